// Draws of the CPU backend: softmax at a temperature, then the rule of lib/ops/sampling.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pick.cc"
#include "kernels/cpu/targets.h"

#include <hwy/foreach_target.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/math-inl.h"
#include "lib/base/philox.h"

HWY_BEFORE_NAMESPACE();
namespace drama3 {
namespace HWY_NAMESPACE {

// Probabilities softmax((logit - top) / temperature); (l - max) / t, since l / t may overflow.
void temper(Candidate* candidates, const float* logits, int64_t count, float top, float temperature) {
  Floats sum = zero();
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t rest = std::min(count - i, kLanes);
    float weights[kLanes];
    store(exp((load_first(logits + i, rest) - splat(top)) / splat(temperature)), weights);
    for (int64_t lane = 0; lane < rest; ++lane) {
      candidates[i + lane] = {weights[lane], static_cast<int32_t>(i + lane)};
    }
    sum = sum + load_first(weights, rest);
  }
  const float total = fold_sum(sum);
  for (int64_t i = 0; i < count; ++i) candidates[i].probability /= total;
}

}  // namespace HWY_NAMESPACE
}  // namespace drama3
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drama3 {

HWY_EXPORT(temper);

void CpuOps::pick(const View& code, const View& logits, const PickState& state, int64_t codebook) {
  Sampling sampling;
  std::memcpy(&sampling, state.sampling.data, sizeof sampling);
  const int32_t frame = *state.frame.row<int32_t>(0);
  const float* logit = logits.row<float>(0);
  const int64_t count = logits.cols();
  int32_t* out = code.row<int32_t>(0);
  *out = 0;
  if (!std::all_of(logit, logit + count, [](float value) { return std::isfinite(value); })) {
    int32_t* failure = state.failure.row<int32_t>(0);
    if (*failure == 0) *failure = pick_failure(frame, codebook);
    return;
  }
  const float* top = std::max_element(logit, logit + count);
  if (sampling.temperature == 0.0f) {
    *out = static_cast<int32_t>(top - logit);
    return;
  }
  if (candidates_.size() < static_cast<size_t>(count)) candidates_.resize(static_cast<size_t>(count));
  const std::span<Candidate> candidates(candidates_.data(), static_cast<size_t>(count));
  HWY_DYNAMIC_DISPATCH(temper)(candidates.data(), logit, count, *top, sampling.temperature);
  const int64_t kept = keep_top(candidates, sampling);
  const float uniform =
      draw_uniform(sampling.seed, static_cast<uint32_t>(frame), static_cast<uint32_t>(codebook));
  *out = draw(candidates.first(static_cast<size_t>(kept)), uniform);
}

}  // namespace drama3
#endif
