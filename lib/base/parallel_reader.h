// Reads parts of mapped files into aligned buffers on a few threads, past the page cache where it helps.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lib/base/file.h"

namespace drama3 {

inline constexpr uint64_t kDirectAlignment = 4096;  // of buffers, offsets and lengths of direct reads

// Which bytes of files are read past the page cache.
enum class DirectReads : uint8_t { kNever, kUncached, kAlways };

// The descriptors of one file, which stay good when its map goes. Errors name the path and the byte.
class SourceFile {
 public:
  // Opens the file once more with O_DIRECT unless direct is kNever; where the file system refuses, or the
  // path leads to another file by now, reads go through the page cache.
  SourceFile(const MappedFile& file, DirectReads direct);

  // Puts bytes [offset, offset + count) at out + offset % kDirectAlignment. `out` is aligned and has room for
  // all blocks that the bytes touch. True when they were read past the page cache; `cached` bytes are not.
  bool read(uint64_t offset, uint64_t count, std::byte* out, bool cached);
  uint64_t serial() const { return serial_; }
  bool is_direct() const { return direct_.is_open() && !refused_.load(); }

 private:
  bool read_direct(uint64_t offset, uint64_t count, std::byte* out);

  uint64_t serial_;
  File cached_;
  File direct_;
  std::atomic<bool> refused_{false};
};

// One part of a file to read, as SourceFile::read takes it.
struct ReadRange {
  std::shared_ptr<SourceFile> file;
  uint64_t offset = 0;
  uint64_t count = 0;
  std::byte* out = nullptr;
  bool cached = false;
};

// The ranges that one thread reads, one after the other.
struct ReadBatch {
  std::vector<ReadRange> ranges;
  bool done = true;          // guarded by the reader
  std::exception_ptr error;  // the first failure, once done
};

struct ReadCounts {
  uint64_t direct = 0;  // bytes read past the page cache
  uint64_t cached = 0;  // bytes read through it
  uint64_t copied = 0;  // bytes of memory that is no file's
};

// The threads. Started with the first call that needs them, stopped by stop() or the destructor.
class ParallelReader {
 public:
  explicit ParallelReader(int threads) : thread_count_(threads) {}
  ~ParallelReader() { stop(); }
  ParallelReader(const ParallelReader&) = delete;
  ParallelReader& operator=(const ParallelReader&) = delete;

  // Hands the batch to the next free thread; it stays where it is until it is done.
  void start(ReadBatch& batch);
  bool is_done(const ReadBatch& batch);
  // Waits until the batch is done; its error stays in it.
  void wait(const ReadBatch& batch);
  // Copies memory on all threads; done on return.
  void copy(std::byte* to, const std::byte* from, uint64_t count);
  // Ends the threads once nothing is left to read.
  void stop();

  ReadCounts counts();

 private:
  void work();
  void enqueue(std::function<void()> job);
  void read(ReadBatch& batch);

  int thread_count_;
  std::mutex mutex_;
  std::condition_variable wake_;      // a job, or the end
  std::condition_variable finished_;  // a batch or a part of a copy
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  bool stopping_ = false;
  ReadCounts counts_;
};

}  // namespace drama3
