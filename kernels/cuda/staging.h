// The ring of pinned slots that stored weights pass through on their way to the device.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "lib/base/parallel_reader.h"

namespace drama3 {

// A piece of stored bytes is placed in the slot that is being filled, beside others. A full slot goes to the
// reading threads, which bring in what lies in mapped files, past the page cache where that helps; slots
// whose bytes are there are copied to their device-side twins in the order of their filling, and the kernels
// that read them are enqueued. So reads, copies and kernels overlap, and a piece lies in one slot, whole.
//
// Pieces are read in the order in which they are passed, except that several slots are being read at once;
// neighbours in a file (with gaps of at most kGapBytes) are read by one call. Any thread may call.
class StagingRing {
 public:
  static constexpr int64_t kPieceBytes = 8 << 20;  // of one piece, at most
  static constexpr int64_t kGapBytes = 64 << 10;
  // Enqueues what reads the piece from the device pointer that it is given, aligned to 256 bytes. It runs in
  // a later call, on the thread of that call.
  using Use = std::function<void(const void*)>;

  StagingRing(cudaStream_t stream, DirectReads direct);
  ~StagingRing();
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  // Bytes in a mapped file are read later, from the file; other bytes have been copied on return. Error, from
  // this or any later call, when a file cannot be read: it names file and byte, and drops all pieces that
  // have not been used.
  void pass(const void* host, int64_t bytes, Use use);
  // Returns when every use is done; closes the files, ends the threads and gives the memory of the slots
  // back, until the next pass().
  void finish();
  // Device memory of all slots.
  static int64_t device_bytes() { return kSlots * kDeviceBytes; }

  ReadCounts counts() { return reader_.counts(); }

 private:
  static constexpr int kSlots = 16;
  static constexpr int kThreads = 8;
  static constexpr size_t kPiecesInSlot = 64;
  static constexpr int64_t kAlignment = 256;
  // Room for one largest piece wherever it begins in its first block.
  static constexpr int64_t kPinnedBytes = kPieceBytes + 2 * static_cast<int64_t>(kDirectAlignment);
  static constexpr int64_t kDeviceBytes = kPieceBytes + static_cast<int64_t>(kPiecesInSlot) * kAlignment;

  struct Piece {
    int64_t pinned_at = 0;
    int64_t device_at = 0;
    int64_t bytes = 0;
    Use use;
  };
  struct Slot {
    std::byte* pinned = nullptr;
    std::byte* device = nullptr;
    int64_t pinned_end = 0;  // of what has been placed
    int64_t device_end = 0;
    std::vector<Piece> pieces;
    ReadBatch batch;
    cudaEvent_t used = nullptr;
  };

  void allocate();
  // Places the piece in the open slot; false when it has no room.
  bool place_file(Slot& slot, const MappedPlace& place, int64_t bytes);
  bool place_memory(Slot& slot, const void* host, int64_t bytes);
  bool has_room(const Slot& slot, int64_t pinned_begin, int64_t bytes) const;
  bool from_cache(const SourceFile& file, const MappedPlace& place, int64_t bytes) const;
  void add_piece(Slot& slot, int64_t pinned_at, int64_t bytes);
  Slot& open();
  void submit();
  void consume_oldest();
  void abandon();
  std::shared_ptr<SourceFile> source(const MappedFile& file);

  cudaStream_t stream_;
  DirectReads direct_;
  std::mutex mutex_;
  std::shared_ptr<void> pinned_;
  std::shared_ptr<void> device_;
  std::vector<Slot> slots_;
  std::vector<std::shared_ptr<SourceFile>> files_;
  size_t next_ = 0;     // the open slot, or the one to open
  size_t waiting_ = 0;  // slots before it that have been submitted and not consumed
  bool open_ = false;
  ParallelReader reader_{kThreads};  // last: its threads read into the slots
};

}  // namespace drama3
