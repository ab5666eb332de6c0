// Layer norm of the CPU backend.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layer_norm.cc"
#include "kernels/cpu/targets.h"

#include <hwy/foreach_target.h>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drama3 {
namespace HWY_NAMESPACE {

// The mean, then the mean of squared distances from it; lanes past the end count as the mean.
void layer_norm_row(const View& out, const View& in, const View& gain, const View& shift, float eps,
                    int64_t row) {
  const int64_t count = in.cols();
  const float* x = in.row<float>(row);
  Floats sum = zero();
  for (int64_t c = 0; c < count; c += kLanes) sum = sum + load_first(x + c, count - c);
  const float mean = fold_sum(sum) / static_cast<float>(count);
  Floats squares = zero();
  for (int64_t c = 0; c < count; c += kLanes) {
    float lanes[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = c + lane < count ? x[c + lane] : mean;
    const Floats distance = load(lanes) - splat(mean);
    squares = fma(distance, distance, squares);
  }
  const Floats scale = splat(1.0f) / sqrt(splat(fold_sum(squares) / static_cast<float>(count) + eps));
  for (int64_t c = 0; c < count; c += kLanes) {
    const int64_t rest = count - c;
    const Floats normed = (load_first(x + c, rest) - splat(mean)) * scale;
    store_first(
        fma(normed, load_first(gain.row<float>(0) + c, rest), load_first(shift.row<float>(0) + c, rest)),
        out.row<float>(row) + c, rest);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace drama3
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drama3 {

HWY_EXPORT(layer_norm_row);

void CpuOps::layer_norm(const View& out, const View& in, const View& weight, const View& bias, float eps) {
  threads_.split(in.rows(), 8 * in.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) HWY_DYNAMIC_DISPATCH(layer_norm_row)(out, in, weight, bias, eps, r);
  });
}

}  // namespace drama3
#endif
