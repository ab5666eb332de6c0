// Convolution pieces beside the matrix product: carried rows and depthwise taps.
#pragma once

#include "kernels/cuda/common/launch.cuh"
#include "lib/tensor/view.h"

namespace drama3 {

// tail = the last rows of (tail, in).
void shift_tail(LaunchQueue& queue, const View& tail, const View& in);

struct DepthwiseSizes {
  int kernel = 1;
  int dilation = 1;
  int stride = 1;
  int history = 0;
};
// out[t][c] = sum over taps in ascending order of weight[tap][c] * in[t * stride + tap * dilation -
// history][c], plus bias.
void depthwise(LaunchQueue& queue, const View& out, const View& in, const View& weight, const View& bias,
               const View& tail, const DepthwiseSizes& sizes);

}  // namespace drama3
