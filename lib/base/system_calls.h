// The one seam for file system calls: each behaves as POSIX says (-1 and errno) and can be made to fail by a
// test.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace drama3 {

// The calls whose n-th use a test can make fail.
enum class SystemCall : uint8_t {
  kOpen,
  kRead,
  kStat,
  kMap,
  kWrite,
  kTruncate,
  kSync,
  kClose,
  kRename,
  kUnlink,
  kOpenDirect,
  kReadDirect
};
inline constexpr int kSystemCallKinds = 12;

// Which use of a call fails, counted from 1 since the fault was set, and with which errno.
struct Fault {
  SystemCall call = SystemCall::kOpen;
  uint64_t nth = 1;
  int error_number = 5;        // EIO
  bool from_there_on = false;  // every later use fails too
};

// Arms one fault per kind of call and sets that kind's count to 0. For tests.
void set_fault(const Fault& fault);
// Disarms all faults and sets all counts to 0. For tests.
void clear_faults();
// Uses of this kind of call since its count was last set to 0.
uint64_t system_call_count(SystemCall call);

// errno's message and number, "No such file or directory (2)".
std::string error_text(int error_number);

// The calls. Reads and writes are repeated after EINTR; close is not. A failing close has
// closed.
namespace sys {
int open(const char* path, int flags, mode_t mode = 0);
int open_direct(const char* path);  // for reading with O_DIRECT
ssize_t read(int fd, void* out, size_t bytes);
ssize_t pread(int fd, void* out, size_t bytes, off_t offset);
ssize_t pread_direct(int fd, void* out, size_t bytes, off_t offset);  // on what open_direct gave
int stat(const char* path, struct ::stat* out);
int fstat(int fd, struct ::stat* out);
void* mmap(size_t bytes, int protection, int flags, int fd);  // MAP_FAILED and errno on failure
ssize_t write(int fd, const void* data, size_t bytes);
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset);
int ftruncate(int fd, off_t size);
int fchmod(int fd, mode_t mode);
int fsync(int fd);
int close(int fd);
int rename(const char* from, const char* to);
int unlink(const char* path);
}  // namespace sys

}  // namespace drama3
