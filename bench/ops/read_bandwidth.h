// The read bandwidth that this machine gives to a number of threads: what shares of peak refer to.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/threads.h"

namespace drama3 {

// Median bytes per second over passes that each read `bytes` of `memory`, one after the other, and do little
// else.
double read_bandwidth(Threads& threads, const std::vector<uint64_t>& memory, int64_t bytes);

// The middle one of some durations or rates.
double median(std::vector<double> values);

}  // namespace drama3
