// RMS norms of the CPU backend: of a row, with the residual sum before it, and of each head with a silu gate.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norm.cc"
#include "kernels/cpu/targets.h"

#include <hwy/foreach_target.h>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drama3 {
namespace HWY_NAMESPACE {

// 1 / sqrt(mean of squares + eps).
HWY_INLINE Floats inverse_rms(const float* x, int64_t count, float eps) {
  Floats sum = zero();
  for (int64_t c = 0; c < count; c += kLanes) {
    const Floats value = load_first(x + c, count - c);
    sum = fma(value, value, sum);
  }
  return splat(1.0f) / sqrt(splat(fold_sum(sum) / static_cast<float>(count) + eps));
}

void rms_norm_row(float* out, const float* in, const float* weight, int64_t count, float eps) {
  const Floats inverse = inverse_rms(in, count, eps);
  for (int64_t c = 0; c < count; c += kLanes) {
    const int64_t rest = count - c;
    store_first(load_first(in + c, rest) * inverse * load_first(weight + c, rest), out + c, rest);
  }
}

// sum += delta, then the norm of sum.
void add_rms_norm_row(float* out, float* sum, const float* delta, const float* weight, int64_t count,
                      float eps) {
  for (int64_t c = 0; c < count; c += kLanes) {
    const int64_t rest = count - c;
    store_first(load_first(sum + c, rest) + load_first(delta + c, rest), sum + c, rest);
  }
  rms_norm_row(out, sum, weight, count, eps);
}

void gated_rms_norm_head(float* out, const float* in, const float* z, const float* weight, int64_t count,
                         float eps) {
  const Floats inverse = inverse_rms(in, count, eps);
  for (int64_t c = 0; c < count; c += kLanes) {
    const int64_t rest = count - c;
    const Floats normed = load_first(in + c, rest) * inverse * load_first(weight + c, rest);
    store_first(normed * silu(load_first(z + c, rest)), out + c, rest);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace drama3
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drama3 {

HWY_EXPORT(rms_norm_row);
HWY_EXPORT(add_rms_norm_row);
HWY_EXPORT(gated_rms_norm_head);

void CpuOps::rms_norm(const View& out, const View& in, const Norm& norm) {
  const float* weight = norm.weight.row<float>(0);
  threads_.split(in.rows(), 4 * in.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      HWY_DYNAMIC_DISPATCH(rms_norm_row)(out.row<float>(r), in.row<float>(r), weight, in.cols(), norm.eps);
    }
  });
}

void CpuOps::add_rms_norm(const View& out, const View& sum, const View& delta, const Norm& norm) {
  const float* weight = norm.weight.row<float>(0);
  threads_.split(sum.rows(), 5 * sum.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      HWY_DYNAMIC_DISPATCH(add_rms_norm_row)
      (out.row<float>(r), sum.row<float>(r), delta.row<float>(r), weight, sum.cols(), norm.eps);
    }
  });
}

void CpuOps::gated_rms_norm(const View& out, const View& in, const View& z, const Norm& norm) {
  const float* weight = norm.weight.row<float>(0);
  const int64_t width = norm.weight.elements();
  INVARIANT(width > 0 && in.cols() % width == 0, in.cols(), " columns in heads of ", width);
  const int64_t heads = in.cols() / width;
  threads_.split(in.rows() * heads, 16 * width, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t r = item / heads, column = item % heads * width;
      HWY_DYNAMIC_DISPATCH(gated_rms_norm_head)
      (out.row<float>(r) + column, in.row<float>(r) + column, z.row<float>(r) + column, weight, width,
       norm.eps);
    }
  });
}

}  // namespace drama3
#endif
