// Construction of the CPU backend.
#include "kernels/cpu/cpu_ops.h"

#include <cstdlib>

#include "kernels/cpu/targets.h"

namespace drama3 {
namespace {

// Entries of the widest distribution at full size (4097 candidates), so that draws there never allocate.
constexpr size_t kUsualCandidates = 8192;
constexpr size_t kUsualExperts = 1024;

}  // namespace

CpuOps::CpuOps(int threads) : threads_(threads) {
  candidates_.resize(kUsualCandidates);
  probabilities_.resize(kUsualExperts);
}

std::unique_ptr<Ops> make_cpu_ops(int threads) {
  if (const char* forced = std::getenv("DRAMA3_CPU")) select_instruction_set(forced);
  return std::make_unique<CpuOps>(threads);
}

}  // namespace drama3
