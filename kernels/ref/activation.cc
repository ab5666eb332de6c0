// Elementwise functions of the codec: Snake, exact GELU, tanh, and a sum with a gain per channel.
#include <cmath>

#include "kernels/ref/ref_ops.h"

namespace drama3 {

void RefOps::snake(const View& out, const View& in, const Snake& snake) {
  const float* alpha = snake.alpha.row<float>(0);
  for (int64_t r = 0; r < in.rows(); ++r) {
    const float* from = in.row<float>(r);
    float* to = out.row<float>(r);
    for (int64_t c = 0; c < in.cols(); ++c) {
      const float sine = std::sin(alpha[c] * from[c]);
      to[c] = from[c] + sine * sine / (alpha[c] + 1e-9f);
    }
  }
}

void RefOps::gelu(const View& out, const View& in) {
  for (int64_t r = 0; r < in.rows(); ++r) {
    const float* from = in.row<float>(r);
    float* to = out.row<float>(r);
    for (int64_t c = 0; c < in.cols(); ++c)
      to[c] = 0.5f * from[c] * (1.0f + std::erf(from[c] * std::sqrt(0.5f)));
  }
}

void RefOps::tanh(const View& out, const View& in) {
  for (int64_t r = 0; r < in.rows(); ++r) {
    for (int64_t c = 0; c < in.cols(); ++c) out.row<float>(r)[c] = std::tanh(in.row<float>(r)[c]);
  }
}

void RefOps::scaled_add(const View& out, const View& x, const View& y, const View& gain) {
  const float* scale = gain.row<float>(0);
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t c = 0; c < out.cols(); ++c) {
      out.row<float>(r)[c] = x.row<float>(r)[c] + scale[c] * y.row<float>(r)[c];
    }
  }
}

}  // namespace drama3
