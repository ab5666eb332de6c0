// An output that is complete or absent: written beside its place and renamed into it, or directly to a pipe
// or device.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace drama3 {

// The reader of a pipe has gone away: nobody is left to tell.
class ReaderGone : public Error {
 public:
  explicit ReaderGone(const std::string& sentence) : Error(sentence) {}
};

enum class OutputKind {
  kReplaced,        // a regular file: temporary file, fsync, rename
  kDirect,          // a device or FIFO: opened and written
  kStandardOutput,  // descriptor 1
};

// Where an output goes, checked.
struct OutputTarget {
  std::string shown = {};  // the name in messages
  std::string path = {};   // the file itself, symbolic links followed
  OutputKind kind = OutputKind::kStandardOutput;
  std::optional<mode_t> mode = {};  // of the existing file
};

// Checks folder and permissions of the path ("-" is standard output) before long work; Error with the
// system's words. A file that nobody may write is refused to root too.
OutputTarget check_output(const std::string& path);

// Removes the temporary files of unfinished outputs; safe in a signal handler.
void remove_unfinished_outputs() noexcept;

// Unless commit() returns, no file is left and an existing one is as it was.
class OutputFile {
 public:
  explicit OutputFile(const OutputTarget& target);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Appends all bytes; Error with the path and the system's words, ReaderGone for a broken pipe.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Writes bytes over earlier ones at the offset from where the output began; only where seekable().
  void write_at(uint64_t offset, std::span<const std::byte> bytes);
  // A regular file that is not open for append.
  bool seekable() const { return seekable_; }
  // Bytes appended so far.
  uint64_t size() const { return size_; }
  // Syncs and closes, so that all that is left for commit() is the move.
  void settle();
  // Settles, and moves the file into its place.
  void commit();

 private:
  void open_beside();
  void discard() noexcept;
  [[noreturn]] void fail_writing(const std::string& act) const;

  OutputTarget target_;
  std::string partial_;  // the temporary file, empty for a direct output
  int slot_ = -1;        // its place in the list for signal handlers
  int fd_ = -1;
  bool seekable_ = false;
  uint64_t start_ = 0;  // offset of the output's first byte in the file
  uint64_t size_ = 0;
};

}  // namespace drama3
