// Sums of the reference: ascending inside blocks of 128 terms, then the blocks in ascending order.
#pragma once

#include "lib/ops/weights.h"

namespace drama3 {

inline constexpr int64_t kSumBlock = 128;  // also the side of an FP8 scale block

// Sum of term(i) for i in [0, count).
template <typename Term>
float block_sum(int64_t count, const Term& term) {
  float sum = 0.0f;
  for (int64_t begin = 0; begin < count; begin += kSumBlock) {
    const int64_t end = begin + kSumBlock < count ? begin + kSumBlock : count;
    float block = 0.0f;
    for (int64_t i = begin; i < end; ++i) block += term(i);
    sum += block;
  }
  return sum;
}

// Output `row` of the weight for one input row of weight.in values, without bias. `x_scale`, one value per
// 128 inputs, belongs to inputs that are FP8 code values; null when the inputs stand for themselves. A block
// counts (sum * x_scale) * weight_scale.
float dot(const Linear& weight, int64_t row, const float* x, const float* x_scale);

}  // namespace drama3
