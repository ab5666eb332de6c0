// Device and pinned host memory under one process-wide limit.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <mutex>

namespace drama3 {

// Bytes held by all backends of the process. Bytes are reserved before the driver is asked and given back
// when it refuses, so that concurrent allocations cannot overshoot the limit together.
class MemoryBudget {
 public:
  static MemoryBudget& process();

  void set_limit(int64_t bytes);  // 0 = none
  // Sets bytes aside; false, with nothing changed, when they do not fit beside what is used and set aside.
  // commit() or refund() follows.
  bool reserve(int64_t bytes);
  void commit(int64_t bytes);  // the driver gave them
  void refund(int64_t bytes);  // it did not: usage and peak are as if it had not been asked
  void release(int64_t bytes);
  int64_t used() const;  // committed
  int64_t peak() const;
  int64_t limit() const;
  int64_t allocations() const;

 private:
  mutable std::mutex mutex_;
  int64_t limit_ = 0;
  int64_t used_ = 0;
  int64_t reserved_ = 0;  // and neither committed nor refunded yet
  int64_t peak_ = 0;
  int64_t allocations_ = 0;
};

// Device memory, zero-filled on `stream`; throws Error that names needed and free bytes.
std::shared_ptr<void> device_memory(int64_t bytes, cudaStream_t stream);
// Page-locked host memory.
std::shared_ptr<void> pinned_memory(int64_t bytes);

}  // namespace drama3
