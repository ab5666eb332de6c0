// Attention of the CPU backend: head norms with RoPE, and softmax over the cache in blocks of positions.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cc"
#include "kernels/cpu/targets.h"

#include <hwy/foreach_target.h>

#include <limits>

#include "kernels/cpu/attention_span.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drama3 {
namespace HWY_NAMESPACE {

HWY_INLINE Floats dot_lanes(const float* a, const float* b, int64_t count) {
  Floats sum = zero();
  for (int64_t c = 0; c < count; c += kLanes) {
    sum = fma(load_first(a + c, count - c), load_first(b + c, count - c), sum);
  }
  return sum;
}

void norm_head(float* out, const float* in, int64_t head_dim, const Norm& norm) {
  if (norm.weight.empty()) {
    std::memmove(out, in, static_cast<size_t>(head_dim) * sizeof(float));
    return;
  }
  const float* weight = norm.weight.row<float>(0);
  const float squares = fold_sum(dot_lanes(in, in, head_dim));
  const Floats inverse = splat(1.0f) / sqrt(splat(squares / static_cast<float>(head_dim) + norm.eps));
  for (int64_t d = 0; d < head_dim; d += kLanes) {
    const int64_t rest = head_dim - d;
    store_first(load_first(in + d, rest) * inverse * load_first(weight + d, rest), out + d, rest);
  }
}

// Products and their sum are rounded one by one, as in the definition: no fused operation here.
void rotate_head(float* head, const Rope& rope, int64_t position) {
  const int64_t half = rope.rotary / 2;
  const int64_t step = rope.interleaved ? 2 : 1;
  const int64_t partner = rope.interleaved ? 1 : half;
  const float* cos = rope.cos.row<float>(position);
  const float* sin = rope.sin.row<float>(position);
  for (int64_t i = 0; i < half; ++i) {
    const float low = head[i * step], high = head[i * step + partner];
    head[i * step] = low * cos[i] - high * sin[i];
    head[i * step + partner] = high * cos[i] + low * sin[i];
  }
}

void norm_rope_row(float* out, const float* in, const HeadLayout& layout, const Norm& norm, const Rope& rope,
                   int64_t position) {
  for (int64_t h = 0; h < layout.heads; ++h) {
    float* head = out + h * layout.head_dim;
    norm_head(head, in + h * layout.stride + layout.offset, layout.head_dim, norm);
    if (rope.rotary > 0) rotate_head(head, rope, position);
  }
}

constexpr int64_t kBlock = 64;  // positions whose softmax weights stand side by side

// Weights exp(score - top) of a block, 0 beyond its `count` positions; returns the new top of all scores.
float weigh_block(float (&weights)[kBlock], const AttentionSpan& span, int64_t begin, int64_t count,
                  float top) {
  const int64_t slots = span.cache->keys.rows();
  for (int64_t p = 0; p < kBlock; ++p) weights[p] = -std::numeric_limits<float>::infinity();
  for (int64_t p = 0; p < count; ++p) {
    const float* key = span.cache->keys.row<float>((begin + p) % slots) + span.column;
    weights[p] = span.scale * fold_sum(dot_lanes(span.query, key, span.head_dim));
    top = weights[p] > top ? weights[p] : top;
  }
  for (int64_t p = 0; p < kBlock; p += kLanes) store(exp(load(weights + p) - splat(top)), weights + p);
  return top;
}

// softmax(scale q.k) v. Blocks are counted from the first visible position; a block that raises the top
// rescales what was summed before it.
void attend_head(float* out, const AttentionSpan& span) {
  const int64_t slots = span.cache->values.rows();
  float top = -std::numeric_limits<float>::infinity();
  Floats total = zero();
  for (int64_t d = 0; d < span.head_dim; ++d) out[d] = 0.0f;
  for (int64_t begin = span.first; begin <= span.last; begin += kBlock) {
    const int64_t count = span.last - begin + 1 < kBlock ? span.last - begin + 1 : kBlock;
    float weights[kBlock];
    const float old_top = top;
    top = weigh_block(weights, span, begin, count, top);
    const Floats rescale = exp(splat(old_top) - splat(top));
    Floats sum = zero();
    for (int64_t p = 0; p < kBlock; p += kLanes) sum = sum + load(weights + p);
    total = fma(total, rescale, sum);
    for (int64_t d = 0; d < span.head_dim; d += kLanes) {
      const int64_t rest = span.head_dim - d;
      Floats mixed = load_first(out + d, rest) * rescale;
      for (int64_t p = 0; p < count; ++p) {
        const float* value = span.cache->values.row<float>((begin + p) % slots) + span.column;
        mixed = fma(splat(weights[p]), load_first(value + d, rest), mixed);
      }
      store_first(mixed, out + d, rest);
    }
  }
  const Floats denominator = splat(fold_sum(total));
  for (int64_t d = 0; d < span.head_dim; d += kLanes) {
    const int64_t rest = span.head_dim - d;
    store_first(load_first(out + d, rest) / denominator, out + d, rest);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace drama3
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drama3 {

HWY_EXPORT(norm_rope_row);
HWY_EXPORT(attend_head);

void CpuOps::head_norm_rope(const View& out, const View& in, const HeadLayout& layout, const Norm& norm,
                            const Rope& rope, const View& position) {
  const int64_t start = *position.row<int32_t>(0);
  INVARIANT(rope.rotary == 0 || start + in.rows() <= rope.cos.rows(), "position ", start + in.rows(), " of ",
            rope.cos.rows());
  threads_.split(in.rows(), 8 * layout.heads * layout.head_dim, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      HWY_DYNAMIC_DISPATCH(norm_rope_row)
      (out.row<float>(r), in.row<float>(r), layout, norm, rope, start + r);
    }
  });
}

void CpuOps::attend(const View& out, const View& query, const KvCache& cache, const View& position,
                    const AttendDims& dims) {
  const int64_t start = *position.row<int32_t>(0);
  const int64_t group = dims.heads / dims.kv_heads;
  const int64_t seen = start + query.rows();
  const int64_t longest = dims.window > 0 && dims.window < seen ? dims.window : seen;
  threads_.split(query.rows() * dims.heads, 4 * longest * dims.head_dim, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t r = item / dims.heads, head = item % dims.heads;
      const int64_t last = start + r;
      const AttentionSpan span{.query = query.row<float>(r) + head * dims.head_dim,
                               .cache = &cache,
                               .column = head / group * dims.head_dim,
                               .first = dims.window > 0 && last >= dims.window ? last - dims.window + 1 : 0,
                               .last = last,
                               .head_dim = dims.head_dim,
                               .scale = dims.scale};
      HWY_DYNAMIC_DISPATCH(attend_head)(out.row<float>(r) + head * dims.head_dim, span);
    }
  });
}

}  // namespace drama3
#endif
