// Files by RAII: File owns a descriptor, MappedFile a read-only map that survives the file shrinking under
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace drama3 {

// An open file. Errors name the path, the call, and errno's text.
class File {
 public:
  File() = default;
  // Takes the descriptor over; path is for messages.
  File(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  // Opens a regular file for reading, following links; anything else is an Error.
  static File open_regular(const std::string& path);
  // Opens with flags of open(2) (O_CLOEXEC is added).
  static File open(const std::string& path, int flags, unsigned mode = 0);

  File(File&& other) noexcept : fd_(other.fd_), path_(std::move(other.path_)) { other.fd_ = -1; }
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();  // closes; an error at that point is not reported, so writers call close() first

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  const std::string& path() const { return path_; }

  // The size now, in bytes.
  uint64_t size() const;
  // Fills out from offset on; a short read is an Error.
  void read_at(uint64_t offset, std::span<std::byte> out) const;
  // Writes all of data at the file position; Error with errno's text otherwise.
  void write_all(std::span<const std::byte> data);
  // Flushes to the device.
  void sync();
  // Closes and reports what close(2) reports.
  void close();
  // A second descriptor of the same open file.
  File duplicate() const;

 private:
  int fd_ = -1;
  std::string path_;
};

// The whole of a regular file, at most limit bytes; a larger file is an Error before anything is allocated.
std::vector<std::byte> read_file(const std::string& path, uint64_t limit);

namespace detail {
struct MappedRange;
}

// A whole regular file mapped read-only; the descriptor stays open.
//
// When the file shrinks while mapped, reading past its new end raises SIGBUS. A handler (installed with the
// first map, chaining to the default for foreign addresses) then puts zero pages in place of the rest of the
// map and marks it as damaged, so that no code between the fault and the next check can crash. check_intact()
// turns the mark, or a size that differs from the one read at open, into a named Error: parsers call it when
// they have read a header, the engine calls check_mapped_files() for each frame before it hands the audio on.
class MappedFile {
 public:
  // Opens and maps path; Error when it is no regular file or cannot be mapped. An empty file has no bytes.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return file_.path(); }
  const File& file() const { return file_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  // A number that no other map of this process has or had.
  uint64_t serial() const { return serial_; }
  // Error when the file was cut, or could not be read, since it was mapped.
  void check_intact() const;
  // Tells the kernel that the pages of [offset, offset + count) are not needed again; their bytes stay valid.
  void release_pages(uint64_t offset, uint64_t count) const;
  // Asks the kernel to bring [offset, offset + count) into the page cache; does not wait for it.
  void prefetch(uint64_t offset, uint64_t count) const;
  // Whether a sample of the pages of [offset, offset + count) lies in the page cache. The kernel says yes to
  // a process that may not write the file.
  bool seems_cached(uint64_t offset, uint64_t count) const;

 private:
  File file_;
  std::span<const std::byte> bytes_;
  uint64_t serial_ = 0;
  detail::MappedRange* range_ = nullptr;
};

// Where bytes of a map stand in their file.
struct MappedPlace {
  const MappedFile* file = nullptr;
  uint64_t offset = 0;
};

// The file that is mapped at [data, data + count), whole; nothing when none is.
std::optional<MappedPlace> mapped_place(const void* data, uint64_t count);

// check_intact() for every file that is mapped now.
void check_mapped_files();

}  // namespace drama3
