// File and MappedFile over the seam of system calls, with the SIGBUS handler that guards maps.
#include "lib/base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/system_calls.h"

namespace drama3 {

File File::open(const std::string& path, int flags, unsigned mode) {
  const int fd = sys::open(path.c_str(), flags, static_cast<mode_t>(mode));
  if (fd < 0) {
    const int error_number = errno;
    fail(path, ": cannot open: expected a file, got ", error_text(error_number));
  }
  return File(fd, path);
}

File File::open_regular(const std::string& path) {
  // Without O_NONBLOCK a FIFO would block here before its kind can be seen.
  File file = open(path, O_RDONLY | O_NONBLOCK);
  struct ::stat status {};
  if (sys::fstat(file.fd(), &status) != 0) {
    const int error_number = errno;
    fail(path, ": cannot read its status: ", error_text(error_number));
  }
  if (!S_ISREG(status.st_mode)) {
    fail(path, ": expected a regular file, got ",
         S_ISDIR(status.st_mode) ? "a folder" : "a device, pipe or socket");
  }
  return file;
}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) sys::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
    path_ = std::move(other.path_);
  }
  return *this;
}

File::~File() {
  if (fd_ >= 0) sys::close(fd_);
}

uint64_t File::size() const {
  struct ::stat status {};
  if (sys::fstat(fd_, &status) != 0) {
    const int error_number = errno;
    fail(path_, ": cannot read its size: ", error_text(error_number));
  }
  return static_cast<uint64_t>(status.st_size);
}

void File::read_at(uint64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got =
        sys::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got < 0) {
      const int error_number = errno;
      fail(path_, ": cannot read at byte ", offset + done, ": ", error_text(error_number));
    }
    if (got == 0) {
      fail(path_, ": short read: expected ", out.size(), " bytes at byte ", offset, ", got ", done);
    }
    done += static_cast<size_t>(got);
  }
}

void File::write_all(std::span<const std::byte> data) {
  size_t done = 0;
  while (done < data.size()) {
    const ssize_t written = sys::write(fd_, data.data() + done, data.size() - done);
    if (written <= 0) {
      const int error_number = written < 0 ? errno : ENOSPC;
      fail(path_, ": cannot write: expected ", data.size(), " bytes, got ", done, ": ",
           error_text(error_number));
    }
    done += static_cast<size_t>(written);
  }
}

void File::sync() {
  if (sys::fsync(fd_) != 0) {
    const int error_number = errno;
    fail(path_, ": cannot flush to the device: ", error_text(error_number));
  }
}

void File::close() {
  if (sys::close(std::exchange(fd_, -1)) != 0) {
    const int error_number = errno;
    fail(path_, ": cannot close: ", error_text(error_number));
  }
}

File File::duplicate() const {
  const int fd = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) {
    const int error_number = errno;
    fail(path_, ": cannot duplicate its descriptor: ", error_text(error_number));
  }
  return File(fd, path_);
}

std::vector<std::byte> read_file(const std::string& path, uint64_t limit) {
  const File file = File::open_regular(path);
  const uint64_t size = file.size();
  if (size > limit) fail(path, ": expected at most ", limit, " bytes, got ", size);
  std::vector<std::byte> bytes(size);
  file.read_at(0, bytes);
  return bytes;
}

namespace detail {

// One map, as the signal handler sees it. Records are never freed, only reused, so the handler may always
// walk them.
struct MappedRange {
  std::atomic<uintptr_t> begin{0};  // 0: free
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> damaged{false};
  const MappedFile* owner = nullptr;  // guarded by g_ranges_mutex
  MappedRange* next = nullptr;
};

}  // namespace detail

namespace {

using detail::MappedRange;

std::atomic<MappedRange*> g_ranges{nullptr};
std::mutex g_ranges_mutex;

// Replaces the rest of a map by zero pages when the fault lies in one of ours; dies by SIGBUS otherwise.
void on_bus_error(int signal_number, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (MappedRange* range = g_ranges.load(); range != nullptr; range = range->next) {
    const uintptr_t begin = range->begin.load();
    const uintptr_t end = range->end.load();
    if (begin == 0 || address < begin || address >= end) continue;
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const uintptr_t first = address / page * page;
    void* const zeros = ::mmap(reinterpret_cast<void*>(first), end - first, PROT_READ,
                               MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) break;
    range->damaged.store(true);
    return;
  }
  ::signal(signal_number, SIG_DFL);  // the faulting instruction runs again and ends the process
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct ::sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, nullptr);
  });
}

MappedRange* register_range(const std::byte* data, size_t size, const MappedFile* owner) {
  const std::lock_guard<std::mutex> lock(g_ranges_mutex);
  MappedRange* range = g_ranges.load();
  while (range != nullptr && range->begin.load() != 0) range = range->next;
  if (range == nullptr) {
    range = new MappedRange;
    range->next = g_ranges.load();
    g_ranges.store(range);
  }
  range->damaged.store(false);
  range->owner = owner;
  range->end.store(reinterpret_cast<uintptr_t>(data) + size);
  range->begin.store(reinterpret_cast<uintptr_t>(data));
  return range;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : file_(File::open_regular(path)) {
  static std::atomic<uint64_t> maps{0};
  serial_ = ++maps;
  const uint64_t size = file_.size();
  if (size == 0) return;
  install_handler();
  void* const data = sys::mmap(size, PROT_READ, MAP_SHARED, file_.fd());
  if (data == MAP_FAILED) {
    const int error_number = errno;
    fail(path, ": cannot map ", size, " bytes: ", error_text(error_number));
  }
  bytes_ = {static_cast<const std::byte*>(data), static_cast<size_t>(size)};
  try {
    range_ = register_range(bytes_.data(), bytes_.size(), this);
  } catch (...) {
    ::munmap(data, size);
    throw;
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : file_(std::move(other.file_)),
      bytes_(std::exchange(other.bytes_, {})),
      serial_(other.serial_),
      range_(std::exchange(other.range_, nullptr)) {
  if (range_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(g_ranges_mutex);
  range_->owner = this;
}

MappedFile::~MappedFile() {
  if (range_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(g_ranges_mutex);
  range_->owner = nullptr;
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  range_->begin.store(0);
}

void MappedFile::check_intact() const {
  const uint64_t size = file_.size();
  if (size != bytes_.size()) {
    fail(path(), ": the file changed while in use: expected ", bytes_.size(), " bytes, got ", size);
  }
  if (range_ != nullptr && range_->damaged.load()) {
    fail(path(), ": the file could not be read while in use: expected ", bytes_.size(),
         " readable bytes, got a read error of the device or a cut file");
  }
}

void MappedFile::release_pages(uint64_t offset, uint64_t count) const {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t begin = (offset + page - 1) / page * page;
  const uint64_t end = (offset + count) / page * page;
  if (range_ == nullptr || begin >= end || end > bytes_.size()) return;
  // Pages that were replaced by the handler must stay zero pages; those of the file come back from the cache.
  ::madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin, MADV_DONTNEED);
}

void MappedFile::prefetch(uint64_t offset, uint64_t count) const {
  ::posix_fadvise(file_.fd(), static_cast<off_t>(offset), static_cast<off_t>(count), POSIX_FADV_WILLNEED);
}

bool MappedFile::seems_cached(uint64_t offset, uint64_t count) const {
  constexpr uint64_t kSamples = 4;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (count == 0 || offset + count > bytes_.size()) return false;
  for (uint64_t i = 0; i < kSamples; ++i) {
    const uint64_t at = (offset + (count - 1) * i / (kSamples - 1)) / page * page;
    unsigned char resident = 0;
    if (::mincore(const_cast<std::byte*>(bytes_.data()) + at, 1, &resident) != 0 || (resident & 1) == 0)
      return false;
  }
  return true;
}

std::optional<MappedPlace> mapped_place(const void* data, uint64_t count) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const std::lock_guard<std::mutex> lock(g_ranges_mutex);
  for (MappedRange* range = g_ranges.load(); range != nullptr; range = range->next) {
    if (range->owner == nullptr || begin < range->begin.load() || begin + count > range->end.load()) continue;
    return MappedPlace{range->owner, begin - range->begin.load()};
  }
  return std::nullopt;
}

void check_mapped_files() {
  const std::lock_guard<std::mutex> lock(g_ranges_mutex);
  for (MappedRange* range = g_ranges.load(); range != nullptr; range = range->next) {
    if (range->owner != nullptr) range->owner->check_intact();
  }
}

}  // namespace drama3
