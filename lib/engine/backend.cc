// Device names, the number of threads, and the backends behind them.
#include "lib/engine/backend.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/targets.h"
#include "kernels/ref/ref_ops.h"
#include "lib/base/error.h"

namespace drama3 {
namespace {

// The first line of a small system file, empty when there is none.
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Distinct (package, core) pairs of the CPUs that this process may run on.
int physical_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  std::set<std::pair<std::string, std::string>> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string topology = join("/sys/devices/system/cpu/cpu", cpu, "/topology/");
    std::string core = first_line(topology + "core_id");
    if (core.empty()) core = join("cpu", cpu);
    cores.emplace(first_line(topology + "physical_package_id"), core);
  }
  return std::max(1, static_cast<int>(cores.size()));
}

// CPUs that the cgroup's quota pays for, rounded up; 0 for no quota.
int cgroup_quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0.0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0.0) return 0;
  try {
    return std::max(1, static_cast<int>((std::stod(quota) + period - 1.0) / period));
  } catch (const std::exception&) {
    return 0;
  }
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

Backend open_cpu(int threads) {
  Backend backend;
  backend.threads = threads > 0 ? threads : default_threads();
  backend.ops = make_cpu_ops(backend.threads);
  backend.device = {.id = "cpu", .name = cpu_name()};
  backend.cpu_path = instruction_set();
  return backend;
}

}  // namespace

int default_threads() {
  const int cores = physical_cores();
  const int quota = cgroup_quota();
  return quota > 0 ? std::min(cores, quota) : cores;
}

std::vector<std::string> list_cpu_paths() { return instruction_sets(); }

std::vector<DeviceInfo> list_devices() { return {{.id = "cpu", .name = cpu_name()}}; }

Backend open_backend(const std::string& device, int threads) {
  if (device == "cpu") return open_cpu(threads);
  if (device == "ref") {
    Backend backend;
    backend.ops = std::make_unique<RefOps>();
    backend.device = {.id = "ref", .name = "scalar reference"};
    return backend;
  }
  if (device == "auto") {
    Backend backend = open_cpu(threads);
    backend.reason = "no usable CUDA device";
    return backend;
  }
  if (device.starts_with("cuda")) {
    fail("device ", device,
         ": expected a usable CUDA device, got none (no CUDA device found); use --device cpu");
  }
  fail("device: expected auto, cpu, ref or cuda[:N], got ", device);
}

}  // namespace drama3
