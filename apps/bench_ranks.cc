// One process alone, and the device that each of several takes.
#include "apps/bench_ranks.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/engine/backend.h"

namespace drama3::bench {
namespace {

// The threads of one of several processes. mpirun has mostly bound each to its own cores already, which
// the default sees; where it has not, the cores are shared out.
int threads_of_rank(const Ranks& ranks) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool known = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  const bool bound = known && CPU_COUNT(&allowed) < ::sysconf(_SC_NPROCESSORS_ONLN);
  return bound ? 0 : std::max(1, default_threads() / ranks.local_size());
}

}  // namespace

EngineOptions engine_of_rank(const Ranks& ranks, EngineOptions options) {
  if (ranks.size() == 1) return options;
  if (options.device.starts_with("cuda:")) {
    fail("--device: expected auto, cpu or cuda with ", ranks.size(), " processes, got ", options.device,
         " for all of them; each takes its own device");
  }
  const auto devices = static_cast<int>(list_devices().size()) - 1;  // without the CPU
  if (options.device == "cpu" || (options.device == "auto" && devices == 0)) {
    if (options.threads == 0) options.threads = threads_of_rank(ranks);
    options.device = "cpu";
    return options;
  }
  if (ranks.local_rank() >= devices) {
    fail("--device: expected at most ", devices, " processes on this machine, one a CUDA device, got ",
         ranks.local_size());
  }
  options.device = join("cuda:", ranks.local_rank());
  return options;
}

}  // namespace drama3::bench
