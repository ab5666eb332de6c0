// Which instruction sets the kernels are compiled for, and the choice among them at run time. Include it
// before hwy/foreach_target.h, with an empty line between them lest clang-format swaps the two.
#pragma once

// Baseline (scalar, or NEON on Arm), AVX2 and AVX-512 with FMA in hardware: in between lies nothing that our
// sums, which need a fused multiply-add, would gain from.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#include <string>
#include <string_view>
#include <vector>

namespace drama3 {

// Names of the instruction sets that this build has and this CPU runs, best first: "avx512", "avx2", "neon",
// "scalar".
std::vector<std::string> instruction_sets();

// Makes every kernel of the process use this set from the next call on; "" is the best one. Error when the
// name is unknown or the CPU or the build lacks it. Results do not depend on it.
void select_instruction_set(std::string_view name);

// The name of the set in use.
std::string instruction_set();

// Whether the CPU multiplies subnormal floats as fast as others: AMD's do, Intel's take some 150 cycles each.
// Only ever a choice between two ways to the same bits.
bool multiplies_subnormals_at_full_speed();

}  // namespace drama3
