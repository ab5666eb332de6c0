// Reference linear layer: one dot product per output, weights widened where they are read.
#include "kernels/ref/dot.h"
#include "kernels/ref/ref_ops.h"

namespace drama3 {

float dot(const Linear& weight, int64_t row, const float* x, const float* x_scale) {
  double sum = 0.0;
  for (int64_t begin = 0; begin < weight.in; begin += kSumBlock) {
    const int64_t end = begin + kSumBlock < weight.in ? begin + kSumBlock : weight.in;
    double block = 0.0;
    for (int64_t i = begin; i < end; ++i) block += double{x[i]} * stored_value(weight.weight, row, i);
    if (x_scale != nullptr) block *= x_scale[begin / kSumBlock];
    if (!weight.scale.empty()) block *= stored_value(weight.scale, row / kSumBlock, begin / kSumBlock);
    sum += block;
  }
  return static_cast<float>(sum);
}

void RefOps::linear(const View& out, const View& in, const Linear& weight) {
  INVARIANT(in.cols() == weight.in && out.cols() == weight.out && out.rows() == in.rows(), out.shape.text(),
            " from ", in.shape.text());
  for (int64_t r = 0; r < in.rows(); ++r) {
    const float* x = in.row<float>(r);
    float* y = out.row<float>(r);
    for (int64_t o = 0; o < weight.out; ++o) {
      y[o] = dot(weight, o, x, nullptr);
      if (!weight.bias.empty()) y[o] += weight.bias.row<float>(0)[o];
    }
  }
}

}  // namespace drama3
