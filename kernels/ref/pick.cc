// Reference softmax at a temperature.
#include <cmath>

#include "kernels/ref/dot.h"
#include "kernels/ref/ref_ops.h"

namespace drama3 {

void RefOps::temper(std::span<Candidate> candidates, const float* logits, float top, float temperature) {
  const auto weight = [&](int64_t i) { return std::exp((logits[i] - top) / temperature); };
  const int64_t count = static_cast<int64_t>(candidates.size());
  const float total = wide_sum(count, weight);
  for (int64_t i = 0; i < count; ++i) {
    candidates[static_cast<size_t>(i)] = {weight(i) / total, static_cast<int32_t>(i)};
  }
}

}  // namespace drama3
