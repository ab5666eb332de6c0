// Layer norm over the columns of each row.
#include <cmath>

#include "kernels/ref/ref_ops.h"

namespace drama3 {

void RefOps::layer_norm(const View& out, const View& in, const View& weight, const View& bias, float eps) {
  const int64_t cols = in.cols();
  const float* gain = weight.row<float>(0);
  const float* shift = bias.row<float>(0);
  for (int64_t r = 0; r < in.rows(); ++r) {
    const float* from = in.row<float>(r);
    float* to = out.row<float>(r);
    float sum = 0.0f;
    for (int64_t c = 0; c < cols; ++c) sum += from[c];
    const float mean = sum / static_cast<float>(cols);
    float squares = 0.0f;
    for (int64_t c = 0; c < cols; ++c) squares += (from[c] - mean) * (from[c] - mean);
    const float scale = 1.0f / std::sqrt(squares / static_cast<float>(cols) + eps);
    for (int64_t c = 0; c < cols; ++c) to[c] = (from[c] - mean) * scale * gain[c] + shift[c];
  }
}

}  // namespace drama3
