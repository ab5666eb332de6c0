// Descending order, cut-offs and inverse-CDF draw.
#include "kernels/host/draw.h"

#include <algorithm>

namespace drama3 {

int64_t keep_top(std::span<Candidate> candidates, const Sampling& sampling) {
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.index < b.index;
  };
  int64_t limit = static_cast<int64_t>(candidates.size());
  if (sampling.top_k > 0) limit = std::min<int64_t>(limit, sampling.top_k);
  const auto first = candidates.begin();
  float cumulative = 0.0f;  // of the entries before `kept`
  int64_t kept = 0, sorted = 0, step = 64;
  // Sorts only as far down as entries are kept: a segment, then four times as many, ...
  while (kept < limit && (kept == 0 || cumulative < sampling.top_p)) {
    if (kept == sorted) {
      const int64_t end = std::min(limit, sorted + step);
      if (end < static_cast<int64_t>(candidates.size())) {
        std::nth_element(first + sorted, first + end - 1, candidates.end(), before);
      }
      std::sort(first + sorted, first + end, before);
      sorted = end;
      step *= 4;
    }
    cumulative += candidates[static_cast<size_t>(kept++)].probability;
  }
  for (int64_t i = 0; i < kept; ++i) candidates[static_cast<size_t>(i)].probability /= cumulative;
  return kept;
}

int32_t draw(std::span<const Candidate> kept, float uniform) {
  float running = 0.0f;
  for (const Candidate& candidate : kept) {
    running += candidate.probability;
    if (running > uniform) return candidate.index;
  }
  return kept.back().index;
}

}  // namespace drama3
