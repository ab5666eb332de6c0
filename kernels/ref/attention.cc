// Reference attention: head norms with RoPE, and softmax over the cache in position order.
#include <cmath>
#include <limits>

#include "kernels/ref/dot.h"
#include "kernels/ref/ref_ops.h"

namespace drama3 {
namespace {

void norm_head(float* out, const float* in, int64_t head_dim, const Norm& norm) {
  float inverse = 1.0f;
  if (!norm.weight.empty()) {
    const float squares = wide_sum(head_dim, [in](int64_t d) { return in[d] * in[d]; });
    inverse = 1.0f / std::sqrt(squares / static_cast<float>(head_dim) + norm.eps);
  }
  for (int64_t d = 0; d < head_dim; ++d) {
    out[d] = norm.weight.empty() ? in[d] : in[d] * inverse * norm.weight.row<float>(0)[d];
  }
}

void rotate_head(float* head, const Rope& rope, int64_t position) {
  const int64_t half = rope.rotary / 2;
  const int64_t step = rope.interleaved ? 2 : 1;
  const int64_t partner = rope.interleaved ? 1 : half;
  for (int64_t i = 0; i < half; ++i) {
    const float cos = rope.cos.row<float>(position)[i], sin = rope.sin.row<float>(position)[i];
    float& low = head[i * step];
    float& high = head[i * step + partner];
    const float turned = low * cos - high * sin;
    high = high * cos + low * sin;
    low = turned;
  }
}

// softmax(scale q.k) v of one query head over positions [first, last].
void attend_head(float* out, const float* query, const KvCache& cache, int64_t kv_column,
                 const AttendDims& dims, int64_t first, int64_t last) {
  const int64_t slots = cache.keys.rows(), head_dim = dims.head_dim;
  const auto score = [&](int64_t position) {
    const float* key = cache.keys.row<float>(position % slots) + kv_column;
    return dims.scale * wide_sum(head_dim, [&](int64_t d) { return query[d] * key[d]; });
  };
  float top = -std::numeric_limits<float>::infinity();
  for (int64_t p = first; p <= last; ++p) top = std::fmax(top, score(p));
  float total = 0.0f;
  for (int64_t d = 0; d < head_dim; ++d) out[d] = 0.0f;
  for (int64_t p = first; p <= last; ++p) {
    const float* value = cache.values.row<float>(p % slots) + kv_column;
    const float weight = std::exp(score(p) - top);
    total += weight;
    for (int64_t d = 0; d < head_dim; ++d) out[d] += weight * value[d];
  }
  for (int64_t d = 0; d < head_dim; ++d) out[d] /= total;
}

}  // namespace

void RefOps::head_norm_rope(const View& out, const View& in, const HeadLayout& layout, const Norm& norm,
                            const Rope& rope, const View& position) {
  const int64_t start = *position.row<int32_t>(0);
  for (int64_t r = 0; r < in.rows(); ++r) {
    for (int64_t h = 0; h < layout.heads; ++h) {
      float* head = out.row<float>(r) + h * layout.head_dim;
      norm_head(head, in.row<float>(r) + h * layout.stride + layout.offset, layout.head_dim, norm);
      rotate_head(head, rope, start + r);
    }
  }
}

void RefOps::attend(const View& out, const View& query, const KvCache& cache, const View& position,
                    const AttendDims& dims) {
  const int64_t start = *position.row<int32_t>(0);
  const int64_t group = dims.heads / dims.kv_heads;
  for (int64_t r = 0; r < query.rows(); ++r) {
    const int64_t last = start + r;
    const int64_t first = dims.window > 0 && last >= dims.window ? last - dims.window + 1 : 0;
    for (int64_t h = 0; h < dims.heads; ++h) {
      attend_head(out.row<float>(r) + h * dims.head_dim, query.row<float>(r) + h * dims.head_dim, cache,
                  h / group * dims.head_dim, dims, first, last);
    }
  }
}

}  // namespace drama3
