// Filling, reading and consuming of the slots.
#include "kernels/cuda/staging.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cuda/common/check.h"
#include "kernels/cuda/memory.h"
#include "lib/base/check.h"

namespace drama3 {
namespace {

constexpr int64_t kBlock = kDirectAlignment;

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

StagingRing::StagingRing(cudaStream_t stream, DirectReads direct)
    : stream_(stream), direct_(direct), slots_(kSlots) {
  for (Slot& slot : slots_) CUDA_CHECK(cudaEventCreateWithFlags(&slot.used, cudaEventDisableTiming));
}

StagingRing::~StagingRing() {
  reader_.stop();
  cudaStreamSynchronize(stream_);
  for (Slot& slot : slots_) cudaEventDestroy(slot.used);
}

void StagingRing::allocate() {
  if (pinned_ != nullptr) return;
  pinned_ = pinned_memory(kSlots * kPinnedBytes + kBlock);
  device_ = device_memory(kSlots * kDeviceBytes, stream_);
  const auto address = reinterpret_cast<uintptr_t>(pinned_.get());
  auto* pinned = static_cast<std::byte*>(pinned_.get()) + (kDirectAlignment - address % kDirectAlignment);
  auto* device = static_cast<std::byte*>(device_.get());
  for (Slot& slot : slots_) {
    slot.pinned = std::exchange(pinned, pinned + kPinnedBytes);
    slot.device = std::exchange(device, device + kDeviceBytes);
  }
}

void StagingRing::pass(const void* host, int64_t bytes, Use use) {
  INVARIANT(bytes > 0 && bytes <= kPieceBytes, bytes, " bytes for a slot of ", kPieceBytes);
  const std::lock_guard lock(mutex_);
  try {
    allocate();
    const auto place = mapped_place(host, static_cast<uint64_t>(bytes));
    const auto placed = [&](Slot& slot) {
      return place ? place_file(slot, *place, bytes) : place_memory(slot, host, bytes);
    };
    if (!placed(open())) {
      submit();
      INVARIANT(placed(open()), bytes, " bytes do not fit an empty slot");
    }
    slots_[next_].pieces.back().use = std::move(use);
  } catch (...) {
    abandon();
    throw;
  }
}

void StagingRing::finish() {
  const std::lock_guard lock(mutex_);
  try {
    if (open_) submit();
    while (waiting_ > 0) consume_oldest();
    CUDA_CHECK(cudaStreamSynchronize(stream_));
  } catch (...) {
    abandon();
    throw;
  }
  files_.clear();
  reader_.stop();
  pinned_.reset();
  device_.reset();
}

bool StagingRing::has_room(const Slot& slot, int64_t pinned_begin, int64_t bytes) const {
  return slot.pieces.size() < kPiecesInSlot && pinned_begin + bytes <= kPinnedBytes &&
         round_up(slot.device_end, kAlignment) + bytes <= kDeviceBytes;
}

// Whether the page cache is the faster way to these bytes, or the only one.
bool StagingRing::from_cache(const SourceFile& file, const MappedPlace& place, int64_t bytes) const {
  if (!file.is_direct()) return true;
  return direct_ != DirectReads::kAlways &&
         place.file->seems_cached(place.offset, static_cast<uint64_t>(bytes));
}

void StagingRing::add_piece(Slot& slot, int64_t pinned_at, int64_t bytes) {
  const int64_t device_at = round_up(slot.device_end, kAlignment);
  slot.pieces.push_back({.pinned_at = pinned_at, .device_at = device_at, .bytes = bytes, .use = {}});
  slot.pinned_end = pinned_at + bytes;
  slot.device_end = device_at + bytes;
}

bool StagingRing::place_file(Slot& slot, const MappedPlace& place, int64_t bytes) {
  const auto offset = static_cast<int64_t>(place.offset);
  if (!slot.batch.ranges.empty()) {
    ReadRange& last = slot.batch.ranges.back();
    const int64_t end = static_cast<int64_t>(last.offset + last.count);
    // The range before may be followed by memory pieces; then it cannot grow.
    const bool grows =
        last.file->serial() == place.file->serial() && offset >= end && offset - end <= kGapBytes &&
        slot.pinned + slot.pinned_end == last.out + last.offset % kDirectAlignment + last.count;
    if (grows) {
      const int64_t at = slot.pinned_end + (offset - end);
      if (!has_room(slot, at, round_up(offset + bytes, kBlock) - offset)) return false;
      last.count += static_cast<uint64_t>(offset - end + bytes);
      last.cached = last.cached && from_cache(*last.file, place, bytes);
      add_piece(slot, at, bytes);
      return true;
    }
  }
  const int64_t begin = round_up(slot.pinned_end, kBlock);
  const int64_t at = begin + offset % kBlock;
  if (!has_room(slot, at, round_up(offset + bytes, kBlock) - offset)) return false;
  const std::shared_ptr<SourceFile> file = source(*place.file);
  slot.batch.ranges.push_back({.file = file,
                               .offset = place.offset,
                               .count = static_cast<uint64_t>(bytes),
                               .out = slot.pinned + begin,
                               .cached = from_cache(*file, place, bytes)});
  add_piece(slot, at, bytes);
  return true;
}

bool StagingRing::place_memory(Slot& slot, const void* host, int64_t bytes) {
  // A direct read fills whole blocks: memory must not share one with the range before it.
  const int64_t at = round_up(slot.pinned_end, kBlock);
  if (!has_room(slot, at, bytes)) return false;
  reader_.copy(slot.pinned + at, static_cast<const std::byte*>(host), static_cast<uint64_t>(bytes));
  add_piece(slot, at, bytes);
  return true;
}

StagingRing::Slot& StagingRing::open() {
  Slot& slot = slots_[next_];
  if (open_) return slot;
  while (waiting_ == slots_.size()) consume_oldest();
  CUDA_CHECK(cudaEventSynchronize(slot.used));
  slot.pinned_end = slot.device_end = 0;
  slot.pieces.clear();
  slot.batch.ranges.clear();
  slot.batch.error = nullptr;
  open_ = true;
  return slot;
}

void StagingRing::submit() {
  ReadBatch& batch = slots_[next_].batch;
  open_ = false;
  if (!batch.ranges.empty()) reader_.start(batch);
  next_ = (next_ + 1) % slots_.size();
  ++waiting_;
  while (waiting_ > 0 && reader_.is_done(slots_[(next_ + slots_.size() - waiting_) % slots_.size()].batch))
    consume_oldest();
}

void StagingRing::consume_oldest() {
  Slot& slot = slots_[(next_ + slots_.size() - waiting_) % slots_.size()];
  reader_.wait(slot.batch);
  if (slot.batch.error != nullptr) std::rethrow_exception(slot.batch.error);
  for (const Piece& piece : slot.pieces) {
    CUDA_CHECK(cudaMemcpyAsync(slot.device + piece.device_at, slot.pinned + piece.pinned_at,
                               static_cast<size_t>(piece.bytes), cudaMemcpyHostToDevice, stream_));
  }
  for (const Piece& piece : slot.pieces) piece.use(slot.device + piece.device_at);
  CUDA_CHECK(cudaEventRecord(slot.used, stream_));
  --waiting_;
}

// After an error: no thread reads into a slot any more, and nothing waits.
void StagingRing::abandon() {
  for (; waiting_ > 0; --waiting_) {
    reader_.wait(slots_[(next_ + slots_.size() - waiting_) % slots_.size()].batch);
  }
  cudaStreamSynchronize(stream_);
  open_ = false;
  files_.clear();
}

std::shared_ptr<SourceFile> StagingRing::source(const MappedFile& file) {
  const auto known = std::find_if(files_.begin(), files_.end(), [&](const std::shared_ptr<SourceFile>& each) {
    return each->serial() == file.serial();
  });
  if (known != files_.end()) return *known;
  files_.push_back(std::make_shared<SourceFile>(file, direct_));
  return files_.back();
}

}  // namespace drama3
