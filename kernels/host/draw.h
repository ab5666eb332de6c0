// The drawing rule of lib/ops/sampling.h on probabilities that a host backend has computed.
#pragma once

#include <cstdint>
#include <span>

#include "lib/ops/sampling.h"

namespace drama3 {

// One entry of a distribution.
struct Candidate {
  float probability = 0.0f;
  int32_t index = 0;
};

// Moves the entries that top_p and top_k keep to the front, in descending probability (ties: lower index
// first), divides their probabilities by their sum, and returns how many they are. Allocates nothing.
int64_t keep_top(std::span<Candidate> candidates, const Sampling& sampling);

// Index of the first kept entry whose running sum exceeds `uniform`, of the last one if none does.
int32_t draw(std::span<const Candidate> kept, float uniform);

// The code of failure for PickState: which frame and codebook had non-finite logits.
inline int32_t pick_failure(int32_t frame, int64_t codebook) {
  return 1 + frame * 16 + static_cast<int32_t>(codebook);
}

}  // namespace drama3
