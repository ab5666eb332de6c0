// Device and pinned host memory under one process-wide limit, and the ring of pinned slots that weights pass
// through.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace drama3 {

// Bytes held by all backends of the process. Bytes are reserved before the driver is asked and given back
// when it refuses, so that concurrent allocations cannot overshoot the limit together.
class MemoryBudget {
 public:
  static MemoryBudget& process();

  void set_limit(int64_t bytes);  // 0 = none
  // False, with usage and peak unchanged, when the bytes do not fit.
  bool reserve(int64_t bytes);
  void release(int64_t bytes);
  int64_t used() const;
  int64_t peak() const;
  int64_t limit() const;
  int64_t allocations() const;

 private:
  mutable std::mutex mutex_;
  int64_t limit_ = 0;
  int64_t used_ = 0;
  int64_t peak_ = 0;
  int64_t allocations_ = 0;
};

// Device memory, zero-filled on `stream`; throws Error that names needed and free bytes.
std::shared_ptr<void> device_memory(int64_t bytes, cudaStream_t stream);
// Page-locked host memory.
std::shared_ptr<void> pinned_memory(int64_t bytes);

// Weights go to the device through a few pinned slots, each with a device-side twin where packing kernels
// read; filling one slot overlaps with the copies and kernels of the others.
class StagingRing {
 public:
  static constexpr int kSlots = 4;
  static constexpr int64_t kSlotBytes = 16 << 20;

  explicit StagingRing(cudaStream_t stream);
  ~StagingRing();
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  // Copies host bytes (at most kSlotBytes) into a slot's device twin and calls use(device pointer), which
  // enqueues what reads it.
  void pass(const void* host, int64_t bytes, const std::function<void(const void*)>& use);

 private:
  struct Slot {
    std::shared_ptr<void> pinned;
    std::shared_ptr<void> device;
    cudaEvent_t done = nullptr;
  };
  cudaStream_t stream_;
  std::vector<Slot> slots_;
  int next_ = 0;
};

}  // namespace drama3
