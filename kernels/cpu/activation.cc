// Elementwise functions of the codec on the CPU backend: Snake, exact GELU, tanh, and a sum with a gain per
// channel.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activation.cc"
#include "kernels/cpu/targets.h"

#include <hwy/foreach_target.h>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drama3 {
namespace HWY_NAMESPACE {

void snake_panels(const View& out, const View& in, const float* alphas) {
  for (int64_t column = 0; column < in.cols(); column += kLanes) {
    const int64_t rest = in.cols() - column;
    const Floats alpha = load_first(alphas + column, rest);
    const Floats inverse = splat(1.0f) / (alpha + splat(1e-9f));
    for (int64_t r = 0; r < in.rows(); ++r) {
      const Floats x = load_first(in.row<float>(r) + column, rest);
      const Floats sine = sin(alpha * x);
      store_first(fma(sine * sine, inverse, x), out.row<float>(r) + column, rest);
    }
  }
}

void gelu_row(float* out, const float* in, int64_t count) {
  for (int64_t c = 0; c < count; c += kLanes) {
    const Floats x = load_first(in + c, count - c);
    const Floats cumulative = splat(1.0f) + erf(x * splat(0.707106781f));
    store_first(splat(0.5f) * x * cumulative, out + c, count - c);
  }
}

void tanh_row(float* out, const float* in, int64_t count) {
  for (int64_t c = 0; c < count; c += kLanes)
    store_first(tanh(load_first(in + c, count - c)), out + c, count - c);
}

void scaled_add_row(float* out, const float* x, const float* y, const float* gain, int64_t count) {
  for (int64_t c = 0; c < count; c += kLanes) {
    const int64_t rest = count - c;
    store_first(fma(load_first(gain + c, rest), load_first(y + c, rest), load_first(x + c, rest)), out + c,
                rest);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace drama3
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drama3 {

HWY_EXPORT(snake_panels);
HWY_EXPORT(gelu_row);
HWY_EXPORT(tanh_row);
HWY_EXPORT(scaled_add_row);

void snake_rows(const View& out, const View& in, const Snake& snake) {
  HWY_DYNAMIC_DISPATCH(snake_panels)(out, in, snake.alpha.row<float>(0));
}

void CpuOps::snake(const View& out, const View& in, const Snake& snake) {
  threads_.split(in.rows(), 16 * in.cols(), [&](int64_t begin, int64_t end) {
    snake_rows(out.rows_from(begin, end - begin), in.rows_from(begin, end - begin), snake);
  });
}

void CpuOps::gelu(const View& out, const View& in) {
  threads_.split(in.rows(), 32 * in.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      HWY_DYNAMIC_DISPATCH(gelu_row)(out.row<float>(r), in.row<float>(r), in.cols());
    }
  });
}

// A column of samples counts as one long row.
void CpuOps::tanh(const View& out, const View& in) {
  if (in.cols() == 1 && in.dense() && out.dense()) {
    HWY_DYNAMIC_DISPATCH(tanh_row)(out.row<float>(0), in.row<float>(0), in.rows());
    return;
  }
  for (int64_t r = 0; r < in.rows(); ++r) {
    HWY_DYNAMIC_DISPATCH(tanh_row)(out.row<float>(r), in.row<float>(r), in.cols());
  }
}

void CpuOps::scaled_add(const View& out, const View& x, const View& y, const View& gain) {
  for (int64_t r = 0; r < out.rows(); ++r) {
    HWY_DYNAMIC_DISPATCH(scaled_add_row)
    (out.row<float>(r), x.row<float>(r), y.row<float>(r), gain.row<float>(0), out.cols());
  }
}

}  // namespace drama3
#endif
