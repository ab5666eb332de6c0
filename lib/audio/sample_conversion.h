// Float samples to 16-bit ones, and what a listener should know about their level.
#pragma once

#include <cstdint>
#include <span>

namespace drama3 {

// The level of all samples converted so far.
struct LevelMeter {
  uint64_t samples = 0;
  uint64_t clipped = 0;  // samples beyond full scale, clamped
  float peak = 0;        // largest magnitude, 1 = full scale
};

// out[i] = in[i] * 32767, rounded to nearest (ties to even) and clamped to [-32768, 32767]; out and in are of
// one size. A NaN or infinity is an Error that names the sample, counted from the meter's start.
void convert_samples(std::span<int16_t> out, std::span<const float> in, LevelMeter& meter);

}  // namespace drama3
