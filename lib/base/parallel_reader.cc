// Direct reads with their fall-back, and the threads that do them.
#include "lib/base/parallel_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/base/error.h"
#include "lib/base/system_calls.h"

namespace drama3 {
namespace {

constexpr uint64_t kLeastShare = 64 << 10;  // of a copy that is worth a thread

uint64_t block_of(uint64_t offset) { return offset / kDirectAlignment * kDirectAlignment; }

bool same_file(int a, int b) {
  struct ::stat left {
  }, right{};
  return sys::fstat(a, &left) == 0 && sys::fstat(b, &right) == 0 && left.st_dev == right.st_dev &&
         left.st_ino == right.st_ino;
}

}  // namespace

SourceFile::SourceFile(const MappedFile& file, DirectReads direct)
    : serial_(file.serial()), cached_(file.file().duplicate()) {
  if (direct == DirectReads::kNever) return;
  const int fd = sys::open_direct(file.path().c_str());
  if (fd < 0) return;
  direct_ = File(fd, file.path());
  if (!same_file(fd, cached_.fd())) direct_ = File();
}

bool SourceFile::read(uint64_t offset, uint64_t count, std::byte* out, bool cached) {
  if (!cached && is_direct() && read_direct(offset, count, out)) return true;
  cached_.read_at(offset, {out + offset % kDirectAlignment, count});
  return false;
}

// False when the file system refuses direct reads.
bool SourceFile::read_direct(uint64_t offset, uint64_t count, std::byte* out) {
  const uint64_t begin = block_of(offset), end = offset + count;
  for (uint64_t at = begin; at < end;) {
    const uint64_t wanted = block_of(end + kDirectAlignment - 1) - at;
    const ssize_t got = sys::pread_direct(direct_.fd(), out + (at - begin), wanted, static_cast<off_t>(at));
    if (got < 0) {
      const int error_number = errno;
      if (error_number == EINVAL || error_number == EOPNOTSUPP) {
        refused_.store(true);
        return false;
      }
      fail(direct_.path(), ": cannot read at byte ", at, ": ", error_text(error_number));
    }
    const uint64_t reached = at + static_cast<uint64_t>(got);
    if (reached >= end) break;
    if (block_of(reached) == at) {  // less than a block: the file ends here
      fail(direct_.path(), ": short read: expected ", count, " bytes at byte ", offset, ", got ",
           reached > offset ? reached - offset : 0);
    }
    at = block_of(reached);
  }
  return true;
}

void ParallelReader::start(ReadBatch& batch) {
  batch.done = false;
  batch.error = nullptr;
  try {
    enqueue([this, &batch] { read(batch); });
  } catch (...) {
    batch.done = true;
    throw;
  }
}

void ParallelReader::read(ReadBatch& batch) {
  ReadCounts counts;
  std::exception_ptr error;
  try {
    for (const ReadRange& range : batch.ranges) {
      const bool direct = range.file->read(range.offset, range.count, range.out, range.cached);
      (direct ? counts.direct : counts.cached) += range.count;
    }
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  counts_.direct += counts.direct;
  counts_.cached += counts.cached;
  batch.error = error;
  batch.done = true;
  finished_.notify_all();
}

bool ParallelReader::is_done(const ReadBatch& batch) {
  const std::lock_guard lock(mutex_);
  return batch.done;
}

void ParallelReader::wait(const ReadBatch& batch) {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return batch.done; });
}

void ParallelReader::copy(std::byte* to, const std::byte* from, uint64_t count) {
  const auto threads = static_cast<uint64_t>(thread_count_);
  const uint64_t share = std::max(kLeastShare, (count + threads - 1) / threads);
  uint64_t left = 0;  // parts under way, guarded by mutex_
  for (uint64_t begin = share; begin < count; begin += share) ++left;
  for (uint64_t begin = share; begin < count; begin += share) {
    const uint64_t part = std::min(share, count - begin);
    const auto job = [this, to, from, begin, part, &left] {
      std::memcpy(to + begin, from + begin, part);
      const std::lock_guard lock(mutex_);
      if (--left == 0) finished_.notify_all();
    };
    try {
      enqueue(job);
    } catch (...) {
      job();  // no thread or no memory for it: parts under way still refer to `left`
    }
  }
  std::memcpy(to, from, std::min(share, count));
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return left == 0; });
  counts_.copied += count;
}

void ParallelReader::enqueue(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  while (static_cast<int>(threads_.size()) < thread_count_) threads_.emplace_back([this] { work(); });
  jobs_.push_back(std::move(job));
  wake_.notify_one();
}

void ParallelReader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

void ParallelReader::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  stopping_ = false;
}

ReadCounts ParallelReader::counts() {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace drama3
