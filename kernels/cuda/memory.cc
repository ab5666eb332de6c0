// Device and pinned memory, budget and staging.
#include "kernels/cuda/memory.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/common/check.h"
#include "lib/base/check.h"

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
  if (limit_ > 0 && (bytes > limit_ || used_ > limit_ - bytes)) return false;
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  ++allocations_;
  return true;
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
    budget.release(size);
    cudaGetLastError();  // clears the refused allocation, so that later launches do not report it
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    fail(kind, " memory: expected ", size, " bytes, got ", cudaGetErrorName(code), " with ", free, " of ",
         total, " device bytes free; close other programs or use --device cpu");
  }
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

StagingRing::StagingRing(cudaStream_t stream) : stream_(stream), slots_(kSlots) {
  for (Slot& slot : slots_) {
    slot.pinned = pinned_memory(kSlotBytes);
    slot.device = device_memory(kSlotBytes, stream);
    CUDA_CHECK(cudaEventCreateWithFlags(&slot.done, cudaEventDisableTiming));
  }
}

StagingRing::~StagingRing() {
  cudaStreamSynchronize(stream_);
  for (Slot& slot : slots_) cudaEventDestroy(slot.done);
}

void StagingRing::pass(const void* host, int64_t bytes, const std::function<void(const void*)>& use) {
  INVARIANT(bytes <= kSlotBytes, bytes, " bytes for a slot of ", kSlotBytes);
  Slot& slot = slots_[static_cast<size_t>(next_)];
  next_ = (next_ + 1) % kSlots;
  CUDA_CHECK(cudaEventSynchronize(slot.done));
  std::memcpy(slot.pinned.get(), host, static_cast<size_t>(bytes));
  CUDA_CHECK(cudaMemcpyAsync(slot.device.get(), slot.pinned.get(), static_cast<size_t>(bytes),
                             cudaMemcpyHostToDevice, stream_));
  use(slot.device.get());
  CUDA_CHECK(cudaEventRecord(slot.done, stream_));
}

}  // namespace drama3
