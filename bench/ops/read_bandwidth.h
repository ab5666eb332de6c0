// The read bandwidth that this machine gives to a number of threads: what shares of peak refer to.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/threads.h"

namespace drama3 {

// Reads slices of a memory one after the other and does little else.
class PlainReads {
 public:
  // Each pass reads `bytes` (at least 32 KB) of `memory`, the next slice of it. The first lies in the middle,
  // so that an op that begins at the front and advances as fast has not left its slice in a cache.
  PlainReads(Threads& threads, const std::vector<uint64_t>& memory, int64_t bytes);

  // Bytes per second of one pass.
  double pass();

 private:
  Threads& threads_;
  const std::vector<uint64_t>& memory_;
  int64_t blocks_;
  int64_t slices_;
  int64_t slice_;
};

// The rate that a tenth of them reaches: what a shared machine gives when it does not disturb.
double undisturbed(std::vector<double> rates);

}  // namespace drama3
