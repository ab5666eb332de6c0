// Sums of the reference: of F32 terms in F64, ascending, so that it favours no F32 order of another backend.
#pragma once

#include "lib/ops/weights.h"

namespace drama3 {

inline constexpr int64_t kSumBlock = 128;  // also the side of an FP8 scale block

// Sum of term(i) for i in [0, count).
template <typename Term>
float wide_sum(int64_t count, const Term& term) {
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i) sum += double{term(i)};
  return static_cast<float>(sum);
}

// Output `row` of the weight for one input row of weight.in values, without bias. `x_scale`, one value per
// 128 inputs, belongs to inputs that are FP8 code values; null when the inputs stand for themselves. A block
// counts (sum * x_scale) * weight_scale.
float dot(const Linear& weight, int64_t row, const float* x, const float* x_scale);

}  // namespace drama3
