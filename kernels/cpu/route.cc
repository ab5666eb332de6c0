// Routing and FP8 rounding of rows on the CPU backend.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/route.cc"
#include "kernels/cpu/targets.h"

#include <hwy/foreach_target.h>

#include <algorithm>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/quantize-inl.h"
#include "lib/base/scalars.h"

HWY_BEFORE_NAMESPACE();
namespace drama3 {
namespace HWY_NAMESPACE {

constexpr int64_t kGroup = 128;

void softmax_row(float* out, const float* logits, int64_t count) {
  const Floats top = splat(*std::max_element(logits, logits + count));
  Floats sum = zero();
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t rest = count - i;
    store_first(exp(load_first(logits + i, rest) - top), out + i, rest);
    sum = sum + load_first(out + i, rest);
  }
  const Floats total = splat(fold_sum(sum));
  for (int64_t i = 0; i < count; i += kLanes) {
    store_first(load_first(out + i, count - i) / total, out + i, count - i);
  }
}

void quantize_row(uint8_t* codes, float* scales, const float* x, int64_t count) {
  for (int64_t begin = 0; begin < count; begin += kGroup) {
    const int64_t width = std::min(kGroup, count - begin);
    float values[kGroup];
    scales[begin / kGroup] = quantize_group(values, x + begin, width);
    for (int64_t i = 0; i < width; ++i) codes[begin + i] = float_to_e4m3(values[i]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace drama3
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drama3 {

HWY_EXPORT(softmax_row);
HWY_EXPORT(quantize_row);

void CpuOps::quantize_rows(const View& codes, const View& scales, const View& in) {
  threads_.split(in.rows(), 16 * in.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      HWY_DYNAMIC_DISPATCH(quantize_row)
      (codes.row<uint8_t>(r), scales.row<float>(r), in.row<float>(r), in.cols());
    }
  });
}

void CpuOps::route(const Routing& out, const View& logits, const MoeMix& mix, const MoeReplay& replay) {
  const int64_t experts = logits.cols();
  INVARIANT(mix.top_k > 0 && mix.top_k <= experts, mix.top_k, " of ", experts, " experts");
  if (probabilities_.size() < static_cast<size_t>(experts)) {
    probabilities_.resize(static_cast<size_t>(experts));
  }
  float* probability = probabilities_.data();
  for (int64_t r = 0; r < logits.rows(); ++r) {
    HWY_DYNAMIC_DISPATCH(softmax_row)(probability, logits.row<float>(r), experts);
    int32_t* index = out.indices.row<int32_t>(r);
    float* weight = out.weights.row<float>(r);
    float chosen = 0.0f;
    for (int64_t slot = 0; slot < mix.top_k; ++slot) {
      if (replay.forced_indices.empty()) {
        index[slot] =
            static_cast<int32_t>(std::max_element(probability, probability + experts) - probability);
        weight[slot] = probability[index[slot]];
        probability[index[slot]] = -1.0f;  // taken
      } else {
        index[slot] = replay.forced_indices.row<int32_t>(r)[slot];
        weight[slot] = probability[index[slot]];
      }
      chosen += weight[slot];
    }
    if (!mix.renormalize) continue;
    for (int64_t slot = 0; slot < mix.top_k; ++slot) weight[slot] /= chosen;
  }
}

}  // namespace drama3
#endif
