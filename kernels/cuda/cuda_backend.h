// What the engine and the tools know of the CUDA backend, in plain C++: devices, options, and the factory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/parallel_reader.h"
#include "lib/ops/ops.h"

namespace drama3 {

// One visible device, in PCI order.
struct CudaDevice {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
  std::string driver;  // "580.159.04", or the driver's CUDA version where the system does not say
  std::string pci_id;  // "0000:17:00.0"
  std::string uuid;    // "GPU-..."
};

struct CudaOptions {
  int device = 0;       // index among the visible devices
  bool graphs = true;   // record steps and replay them
  bool overlap = true;  // let a launch load weights before the launch before it has finished
  bool fuse = true;     // merge norms, residual sums and SwiGLU into the projections beside them
  DirectReads direct = DirectReads::kUncached;  // how weights are read
  int64_t memory_limit = 0;  // bytes of device and pinned memory that this process may take; 0 = no limit
};

// What the backend has done so far.
struct CudaCounters {
  int64_t launches = 0;     // kernels enqueued by calls or recorded in a graph
  int64_t allocations = 0;  // device and pinned allocations
  int64_t bytes = 0;        // of device and pinned memory held
  int64_t peak_bytes = 0;
  ReadCounts read;  // of weights
};

// The visible devices; none without a driver, without a device, or in a build without CUDA.
std::vector<CudaDevice> list_cuda_devices();

// The backend on one device; throws Error that says what was found when it cannot be used.
std::unique_ptr<Ops> make_cuda_ops(const CudaOptions& options);

// Counters of an Ops that make_cuda_ops() made.
CudaCounters cuda_counters(const Ops& ops);

// "CUDA 13.0, architectures 90;120", or "without CUDA".
std::string cuda_build();

}  // namespace drama3
