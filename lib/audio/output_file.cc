// Outputs through a temporary file and rename, or direct, every call checked.
#include "lib/audio/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "lib/base/check.h"
#include "lib/base/system_calls.h"

namespace drama3 {
namespace {

// Paths that a signal handler has to unlink; the strings are freed only after their slot is empty.
std::array<std::atomic<char*>, 4> g_unfinished;

int remember_unfinished(const std::string& path) {
  char* copy = ::strdup(path.c_str());
  if (copy == nullptr) fail(path, ": expected memory for a name, got none");
  for (size_t i = 0; i < g_unfinished.size(); ++i) {
    char* empty = nullptr;
    if (g_unfinished[i].compare_exchange_strong(empty, copy)) return static_cast<int>(i);
  }
  ::free(copy);
  INVARIANT(false, "more than ", g_unfinished.size(), " unfinished outputs at once");
  return -1;
}

void forget_unfinished(int slot) { ::free(g_unfinished[static_cast<size_t>(slot)].exchange(nullptr)); }

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// The file a chain of symbolic links ends at, whether it exists or not.
std::string follow_links(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path place(path);
  std::error_code problem;
  for (int links = 0; fs::is_symlink(fs::symlink_status(place, problem)); ++links) {
    if (links == 40) fail(path, ": expected a file, got a chain of more than 40 symbolic links");
    const fs::path next = fs::read_symlink(place, problem);
    if (problem) fail(path, ": expected a readable symbolic link, got: ", problem.message());
    place = next.is_absolute() ? next : place.parent_path() / next;
  }
  return place.string();
}

void check_folder(const std::string& shown, const std::string& path) {
  const std::string folder = folder_of(path);
  struct ::stat status {};
  if (sys::stat(folder.c_str(), &status) != 0) {
    fail(shown, ": expected the folder ", folder, " to exist, got: ", error_text(errno), "; make it first");
  }
  if (!S_ISDIR(status.st_mode))
    fail(shown, ": expected ", folder, " to be a folder, got: ", error_text(ENOTDIR));
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    fail(shown, ": expected a folder to write in, got ", folder, ": ", error_text(errno));
  }
}

void check_existing_file(const std::string& shown, const struct ::stat& status, const std::string& path) {
  const bool permitted = ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
  const int reason = permitted ? EACCES : errno;
  if (!permitted || (S_ISREG(status.st_mode) && (status.st_mode & 0222) == 0)) {
    fail(shown, ": expected a file that may be replaced, got: ", error_text(reason),
         "; change its permissions or choose another name");
  }
}

}  // namespace

OutputTarget check_output(const std::string& path) {
  if (path == "-" || path == "/dev/stdout") return {.shown = "standard output"};
  OutputTarget target{.shown = path, .path = path, .kind = OutputKind::kReplaced};
  struct ::stat status {};
  if (sys::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) fail(path, ": expected a file to write, got a folder: ", error_text(EISDIR));
    check_existing_file(path, status, path);
    if (!S_ISREG(status.st_mode)) {
      target.kind = OutputKind::kDirect;
      return target;
    }
    target.mode = status.st_mode & 07777;
  } else if (errno != ENOENT) {
    fail(path, ": expected a file to write, got: ", error_text(errno));
  }
  target.path = follow_links(path);
  if (target.path.empty() || target.path.back() == '/') {
    fail("output '", path, "': expected the name of a file to write, got none");
  }
  check_folder(path, target.path);
  return target;
}

void remove_unfinished_outputs() noexcept {
  for (std::atomic<char*>& slot : g_unfinished) {
    const char* path = slot.load();
    if (path != nullptr) ::unlink(path);
  }
}

OutputFile::OutputFile(const OutputTarget& target) : target_(target) {
  if (target_.kind == OutputKind::kReplaced) {
    open_beside();
    return;
  }
  fd_ = target_.kind == OutputKind::kStandardOutput ? STDOUT_FILENO
                                                    : sys::open(target_.path.c_str(), O_WRONLY | O_NOCTTY);
  if (fd_ < 0) fail_writing("open it");
  struct ::stat status {};
  const int flags = ::fcntl(fd_, F_GETFL);
  const off_t here = ::lseek(fd_, 0, SEEK_CUR);
  seekable_ = sys::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode) && here >= 0 && flags >= 0 &&
              (flags & O_APPEND) == 0;
  if (seekable_) start_ = static_cast<uint64_t>(here);
}

void OutputFile::open_beside() {
  static constexpr char kHex[] = "0123456789abcdef";
  std::random_device random;
  partial_ = folder_of(target_.path) + "/.drama3-";
  for (int digit = 0; digit < 16; ++digit) partial_ += kHex[random() & 15u];
  partial_ += ".partial";
  slot_ = remember_unfinished(partial_);
  fd_ = sys::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (fd_ < 0 || (target_.mode && sys::fchmod(fd_, *target_.mode) != 0)) {
    const int reason = errno;
    discard();
    errno = reason;
    fail_writing("create it");
  }
  seekable_ = true;
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::discard() noexcept {
  if (fd_ > STDERR_FILENO) sys::close(fd_);
  fd_ = -1;
  if (slot_ < 0) return;
  ::unlink(partial_.c_str());  // not through the seam: cleaning up is what its faults have to leave working
  forget_unfinished(slot_);
  slot_ = -1;
}

void OutputFile::fail_writing(const std::string& act) const {
  const std::string sentence = join(target_.shown, ": expected to ", act, ", got: ", error_text(errno));
  if (errno == EPIPE) throw ReaderGone(sentence);
  fail(sentence);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = sys::write(fd_, bytes.data(), bytes.size());
    if (written == 0) errno = ENOSPC;
    if (written <= 0) fail_writing(join("write ", bytes.size(), " bytes at ", size_));
    size_ += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void OutputFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  INVARIANT(seekable_ && offset + bytes.size() <= size_, offset, "+", bytes.size(), " of ", size_);
  while (!bytes.empty()) {
    const ssize_t written = sys::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(start_ + offset));
    if (written == 0) errno = ENOSPC;
    if (written <= 0) fail_writing(join("write ", bytes.size(), " bytes at ", offset));
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void OutputFile::settle() {
  if (fd_ < 0) return;
  if (seekable_ && sys::fsync(fd_) != 0) fail_writing("sync it");
  if (target_.kind == OutputKind::kStandardOutput) return;
  const int fd = fd_;
  fd_ = -1;
  if (sys::close(fd) != 0) fail_writing("close it");
}

void OutputFile::commit() {
  settle();
  if (target_.kind != OutputKind::kReplaced) return;
  if (sys::rename(partial_.c_str(), target_.path.c_str()) != 0)
    fail_writing("move the finished file into place");
  forget_unfinished(slot_);
  slot_ = -1;
}

}  // namespace drama3
