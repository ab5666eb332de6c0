// The budget, and memory that is taken under it.
#include "kernels/cuda/memory.h"

#include <algorithm>

#include "kernels/cuda/common/check.h"
#include "lib/base/error.h"

namespace drama3 {

MemoryBudget& MemoryBudget::process() {
  static MemoryBudget budget;
  return budget;
}

void MemoryBudget::set_limit(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
}

bool MemoryBudget::reserve(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (limit_ > 0 && (bytes > limit_ || used_ + reserved_ > limit_ - bytes)) return false;
  reserved_ += bytes;
  return true;
}

void MemoryBudget::commit(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  reserved_ -= bytes;
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  ++allocations_;
}

void MemoryBudget::refund(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  reserved_ -= bytes;
}

void MemoryBudget::release(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  used_ -= bytes;
}

int64_t MemoryBudget::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

int64_t MemoryBudget::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

int64_t MemoryBudget::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

int64_t MemoryBudget::allocations() const {
  const std::lock_guard lock(mutex_);
  return allocations_;
}

namespace {

// Reserves, allocates by `take`, and hands out memory that `give` frees.
template <typename Take, typename Give>
std::shared_ptr<void> reserved(const char* kind, int64_t bytes, Take take, Give give) {
  MemoryBudget& budget = MemoryBudget::process();
  const int64_t size = std::max<int64_t>(bytes, 256);
  if (!budget.reserve(size)) {
    fail(kind, " memory: expected ", size, " bytes within the limit of ", budget.limit(), ", got ",
         budget.limit() - budget.used(), " left; raise the limit or use a smaller context");
  }
  void* memory = nullptr;
  const cudaError_t code = take(&memory, static_cast<size_t>(size));
  if (code != cudaSuccess) {
    budget.refund(size);
    cudaGetLastError();  // clears the refused allocation, so that later launches do not report it
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    fail(kind, " memory: expected ", size, " bytes, got ", cudaGetErrorName(code), " with ", free, " of ",
         total, " device bytes free; close other programs or use --device cpu");
  }
  budget.commit(size);
  return {memory, [give, size](void* at) {
            give(at);
            MemoryBudget::process().release(size);
          }};
}

}  // namespace

std::shared_ptr<void> device_memory(int64_t bytes, cudaStream_t stream) {
  std::shared_ptr<void> memory = reserved(
      "device", bytes, [](void** at, size_t size) { return cudaMalloc(at, size); },
      [](void* at) { cudaFree(at); });
  CUDA_CHECK(cudaMemsetAsync(memory.get(), 0, static_cast<size_t>(std::max<int64_t>(bytes, 256)), stream));
  return memory;
}

std::shared_ptr<void> pinned_memory(int64_t bytes) {
  return reserved(
      "pinned", bytes, [](void** at, size_t size) { return cudaMallocHost(at, size); },
      [](void* at) { cudaFreeHost(at); });
}

}  // namespace drama3
