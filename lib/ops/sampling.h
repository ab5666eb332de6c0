// The settings of one request's draws and the rule by which a code is drawn from logits.
#pragma once

#include <cstdint>

namespace drama3 {

// p = softmax(logits / temperature) in F32 over all entries. In descending order (ties: lower index first)
// keep the entries whose preceding cumulative probability is below top_p (the first always), of those at most
// top_k (0 = no limit); renormalise; the drawn entry is the first whose running sum exceeds the uniform (the
// last kept one if none does). temperature 0 takes the argmax, lowest index on ties.
struct Sampling {
  float temperature = 1.0f;
  float top_p = 0.9f;
  int32_t top_k = 0;
  uint64_t seed = 0;
};

}  // namespace drama3
