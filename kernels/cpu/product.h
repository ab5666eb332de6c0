// Products of rows with a stored weight: the inner part that linear layers and experts share.
#pragma once

#include <cstdint>

#include "lib/ops/weights.h"

namespace drama3 {

// The rows of one product and where the results go. Product i reads row x_index[i] of x and writes row
// y_index[i] of y; a null index means i itself.
struct ProductRows {
  const float* x = nullptr;  // rows of weight.in values
  int64_t x_stride = 0;
  const int32_t* x_index = nullptr;
  const float* x_scale = nullptr;  // per row one scale per 128 inputs when x holds FP8 code values, or null
  int64_t scale_stride = 0;
  float* y = nullptr;  // y[row * y_stride + o] for outputs o of the weight
  int64_t y_stride = 0;
  const int32_t* y_index = nullptr;
  int64_t count = 0;
};

// Outputs [begin, end) of weight (bias added) for all rows, on the calling thread. A block of 128 inputs of
// an FP8 weight counts (sum * x_scale) * weight_scale. Each result's bits depend on its own row and weights
// only.
void multiply(const Linear& weight, int64_t begin, int64_t end, const ProductRows& rows);

}  // namespace drama3
