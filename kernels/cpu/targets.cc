// Names of instruction sets and the choice of one.
#include "kernels/cpu/targets.h"

#include <hwy/highway.h>

#include "lib/base/error.h"

namespace drama3 {
namespace {

struct Target {
  const char* name;
  int64_t bit;
};

constexpr Target kTargets[] = {
    {"avx512", HWY_AVX3}, {"avx2", HWY_AVX2}, {"neon", HWY_NEON}, {"scalar", HWY_EMU128 | HWY_SCALAR}};

// Targets of this build that the CPU runs, before any choice of ours.
int64_t runnable() {
  static const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets;
}

int64_t chosen = 0;

}  // namespace

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const Target& target : kTargets) {
    if ((runnable() & target.bit) != 0) names.emplace_back(target.name);
  }
  return names;
}

void select_instruction_set(std::string_view name) {
  for (const Target& target : kTargets) {
    const int64_t bits = runnable() & target.bit;
    if (name != target.name && !name.empty()) continue;
    if (bits == 0 && name.empty()) continue;
    if (bits == 0) break;
    chosen = bits;
    hwy::SetSupportedTargetsForTest(bits);
    hwy::GetChosenTarget().Update(bits);
    return;
  }
  std::string have;
  for (const std::string& set : instruction_sets()) have += (have.empty() ? "" : ", ") + set;
  fail("DRAMA3_CPU: expected one of ", have, " on this machine, got ", name);
}

std::string instruction_set() {
  for (const Target& target : kTargets) {
    if ((chosen & target.bit) != 0) return target.name;
  }
  return instruction_sets().front();
}

bool multiplies_subnormals_at_full_speed() {
#if HWY_ARCH_X86
  static const bool amd = __builtin_cpu_is("amd") != 0;
  return amd;
#else
  return false;
#endif
}

}  // namespace drama3
