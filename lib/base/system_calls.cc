// The system calls with their fault hook: a relaxed counter per kind, compared with the armed fault.
#include "lib/base/system_calls.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

namespace drama3 {
namespace {

struct Hook {
  std::atomic<uint64_t> count{0};
  std::atomic<uint64_t> nth{0};  // 0: no fault
  std::atomic<int> error_number{0};
  std::atomic<bool> from_there_on{false};
};

std::array<Hook, kSystemCallKinds> g_hooks;

Hook& hook_of(SystemCall call) { return g_hooks[static_cast<size_t>(call)]; }

// Counts one use; true, with errno set, when this use has to fail.
bool fails(SystemCall call) {
  Hook& hook = hook_of(call);
  const uint64_t use = hook.count.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint64_t nth = hook.nth.load(std::memory_order_relaxed);
  if (nth == 0 || use < nth) return false;
  if (use > nth && !hook.from_there_on.load(std::memory_order_relaxed)) return false;
  errno = hook.error_number.load(std::memory_order_relaxed);
  return true;
}

template <typename Call>
auto retried(Call call) -> decltype(call()) {
  while (true) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

}  // namespace

void set_fault(const Fault& fault) {
  Hook& hook = hook_of(fault.call);
  hook.count = 0;
  hook.error_number = fault.error_number;
  hook.from_there_on = fault.from_there_on;
  hook.nth = fault.nth;
}

void clear_faults() {
  for (Hook& hook : g_hooks) {
    hook.nth = 0;
    hook.count = 0;
  }
}

uint64_t system_call_count(SystemCall call) { return hook_of(call).count; }

std::string error_text(int error_number) {
  return std::generic_category().message(error_number) + " (" + std::to_string(error_number) + ")";
}

namespace sys {

int open(const char* path, int flags, mode_t mode) {
  if (fails(SystemCall::kOpen)) return -1;
  return retried([&] { return ::open(path, flags | O_CLOEXEC, mode); });
}

int open_direct(const char* path) {
  if (fails(SystemCall::kOpenDirect)) return -1;
  return retried([&] { return ::open(path, O_RDONLY | O_DIRECT | O_NONBLOCK | O_CLOEXEC); });
}

ssize_t read(int fd, void* out, size_t bytes) {
  if (fails(SystemCall::kRead)) return -1;
  return retried([&] { return ::read(fd, out, bytes); });
}

ssize_t pread(int fd, void* out, size_t bytes, off_t offset) {
  if (fails(SystemCall::kRead)) return -1;
  return retried([&] { return ::pread(fd, out, bytes, offset); });
}

ssize_t pread_direct(int fd, void* out, size_t bytes, off_t offset) {
  if (fails(SystemCall::kReadDirect)) return -1;
  return retried([&] { return ::pread(fd, out, bytes, offset); });
}

int stat(const char* path, struct ::stat* out) {
  if (fails(SystemCall::kStat)) return -1;
  return ::stat(path, out);
}

int fstat(int fd, struct ::stat* out) {
  if (fails(SystemCall::kStat)) return -1;
  return ::fstat(fd, out);
}

void* mmap(size_t bytes, int protection, int flags, int fd) {
  if (fails(SystemCall::kMap)) return MAP_FAILED;
  return ::mmap(nullptr, bytes, protection, flags, fd, 0);
}

ssize_t write(int fd, const void* data, size_t bytes) {
  if (fails(SystemCall::kWrite)) return -1;
  return retried([&] { return ::write(fd, data, bytes); });
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  if (fails(SystemCall::kWrite)) return -1;
  return retried([&] { return ::pwrite(fd, data, bytes, offset); });
}

int ftruncate(int fd, off_t size) {
  if (fails(SystemCall::kTruncate)) return -1;
  return ::ftruncate(fd, size);
}

int fchmod(int fd, mode_t mode) { return ::fchmod(fd, mode); }

int fsync(int fd) {
  if (fails(SystemCall::kSync)) return -1;
  return ::fsync(fd);
}

int close(int fd) {
  if (fails(SystemCall::kClose)) {
    const int error_number = errno;
    ::close(fd);
    errno = error_number;
    return -1;
  }
  return ::close(fd);
}

int rename(const char* from, const char* to) {
  if (fails(SystemCall::kRename)) return -1;
  return std::rename(from, to);
}

int unlink(const char* path) {
  if (fails(SystemCall::kUnlink)) return -1;
  return ::unlink(path);
}

}  // namespace sys
}  // namespace drama3
