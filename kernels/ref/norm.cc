// Reference RMS norms: of a row, and of each head with a silu gate.
#include <cmath>

#include "kernels/ref/dot.h"
#include "kernels/ref/ref_ops.h"

namespace drama3 {
namespace {

float inverse_rms(const float* x, int64_t count, float eps) {
  const float squares = wide_sum(count, [x](int64_t i) { return x[i] * x[i]; });
  return 1.0f / std::sqrt(squares / static_cast<float>(count) + eps);
}

}  // namespace

void RefOps::rms_norm(const View& out, const View& in, const Norm& norm) {
  const float* weight = norm.weight.row<float>(0);
  for (int64_t r = 0; r < in.rows(); ++r) {
    const float* x = in.row<float>(r);
    float* y = out.row<float>(r);
    const float inverse = inverse_rms(x, in.cols(), norm.eps);
    for (int64_t c = 0; c < in.cols(); ++c) y[c] = x[c] * inverse * weight[c];
  }
}

void RefOps::gated_rms_norm(const View& out, const View& in, const View& z, const Norm& norm) {
  const float* weight = norm.weight.row<float>(0);
  const int64_t width = norm.weight.elements();
  INVARIANT(in.cols() % width == 0, in.cols(), " columns in heads of ", width);
  for (int64_t r = 0; r < in.rows(); ++r) {
    for (int64_t begin = 0; begin < in.cols(); begin += width) {
      const float* x = in.row<float>(r) + begin;
      const float* gate = z.row<float>(r) + begin;
      float* y = out.row<float>(r) + begin;
      const float inverse = inverse_rms(x, width, norm.eps);
      for (int64_t c = 0; c < width; ++c) {
        y[c] = x[c] * inverse * weight[c] * (gate[c] / (1.0f + std::exp(-gate[c])));
      }
    }
  }
}

}  // namespace drama3
