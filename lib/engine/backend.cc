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
#include "kernels/cuda/cuda_backend.h"
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

DeviceInfo describe(const CudaDevice& device, size_t index) {
  return {.id = join("cuda:", index),
          .name = device.name,
          .compute_capability = join(device.major, ".", device.minor),
          .free_bytes = static_cast<uint64_t>(device.free_bytes),
          .total_bytes = static_cast<uint64_t>(device.total_bytes),
          .driver = device.driver,
          .pci_id = device.pci_id,
          .uuid = device.uuid};
}

// The N of "cuda:N", 0 for "cuda".
size_t cuda_index(const std::string& device) {
  const std::string digits = device == "cuda" ? "0" : device.substr(std::min<size_t>(5, device.size()));
  const bool plain = !digits.empty() && digits.size() < 6 &&
                     std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!plain || (device != "cuda" && !device.starts_with("cuda:"))) {
    fail("device: expected auto, cpu, ref, cuda or cuda:N, got ", device);
  }
  return std::stoul(digits);
}

Backend open_cuda(const std::string& device, const std::vector<CudaDevice>& found) {
  const size_t index = cuda_index(device);
  if (index >= found.size()) {
    std::string names = found.empty() ? "no usable CUDA device" : "";
    for (size_t i = 0; i < found.size(); ++i)
      names += join(i > 0 ? ", " : "", "cuda:", i, " ", found[i].name);
    fail("device ", device, ": expected a usable CUDA device, got ", names, " (", cuda_build(),
         "); drama3-say --list-devices shows what there is, --device cpu runs without");
  }
  Backend backend;
  backend.ops = make_cuda_ops({.device = static_cast<int>(index)});
  backend.device = describe(found[index], index);
  return backend;
}

}  // namespace

int default_threads() {
  const int cores = physical_cores();
  const int quota = cgroup_quota();
  return quota > 0 ? std::min(cores, quota) : cores;
}

std::vector<std::string> list_cpu_paths() { return instruction_sets(); }

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> devices = {{.id = "cpu", .name = cpu_name()}};
  const std::vector<CudaDevice> found = list_cuda_devices();
  for (size_t i = 0; i < found.size(); ++i) devices.push_back(describe(found[i], i));
  return devices;
}

Backend open_backend(const std::string& device, int threads) {
  if (device == "cpu") return open_cpu(threads);
  if (device == "ref") {
    Backend backend;
    backend.ops = std::make_unique<RefOps>();
    backend.device = {.id = "ref", .name = "scalar reference"};
    return backend;
  }
  const std::vector<CudaDevice> found = list_cuda_devices();
  if (device != "auto") return open_cuda(device, found);
  Backend backend = found.empty() ? open_cpu(threads) : open_cuda("cuda", found);
  backend.reason = found.empty() ? "no usable CUDA device (" + cuda_build() + ")" : "first CUDA device";
  return backend;
}

}  // namespace drama3
