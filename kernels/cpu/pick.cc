// Softmax at a temperature on the CPU backend.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pick.cc"
#include "kernels/cpu/targets.h"

#include <hwy/foreach_target.h>

#include <algorithm>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drama3 {
namespace HWY_NAMESPACE {

// HostOps::temper.
void temper_candidates(Candidate* candidates, const float* logits, int64_t count, float top,
                       float temperature) {
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

HWY_EXPORT(temper_candidates);

void CpuOps::temper(std::span<Candidate> candidates, const float* logits, float top, float temperature) {
  HWY_DYNAMIC_DISPATCH(temper_candidates)
  (candidates.data(), logits, static_cast<int64_t>(candidates.size()), top, temperature);
}

}  // namespace drama3
#endif
