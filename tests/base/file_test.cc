// Files through the seam: faults hit the n-th call, short and cut files are named errors, maps survive a cut.
#include "lib/base/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "lib/base/error.h"
#include "lib/base/system_calls.h"

using namespace drama3;

namespace {

// A folder of its own for each test, removed at the end.
struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/drama3-file-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

void write_bytes(const std::string& path, size_t count) {
  File file = File::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const std::string data(count, 'x');
  file.write_all(std::as_bytes(std::span(data)));
  file.close();
}

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the n-th call fails once or from there on, and is counted") {
  Folder folder;
  const std::string path = folder.path + "/f";
  write_bytes(path, 10);
  set_fault({.call = SystemCall::kOpen, .nth = 2, .error_number = EMFILE});
  CHECK(error_of([&] { File::open_regular(path); }) == "");
  CHECK(has(error_of([&] { File::open_regular(path); }), "Too many open files"));
  CHECK(error_of([&] { File::open_regular(path); }) == "");
  CHECK(system_call_count(SystemCall::kOpen) == 3);
  set_fault({.call = SystemCall::kOpen, .nth = 1, .error_number = EMFILE, .from_there_on = true});
  CHECK(error_of([&] { File::open_regular(path); }) != "");
  CHECK(error_of([&] { File::open_regular(path); }) != "");
  clear_faults();
  CHECK(error_of([&] { File::open_regular(path); }) == "");
}

TEST_CASE("writing, syncing and closing report their errors with the path") {
  Folder folder;
  const std::string path = folder.path + "/f";
  const std::string data = "abc";
  for (const SystemCall call : {SystemCall::kWrite, SystemCall::kSync, SystemCall::kClose}) {
    set_fault({.call = call, .nth = 1, .error_number = ENOSPC});
    const std::string message = error_of([&] {
      File file = File::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
      file.write_all(std::as_bytes(std::span(data)));
      file.sync();
      file.close();
    });
    CHECK(has(message, path));
    CHECK(has(message, "No space left"));
    clear_faults();
  }
}

TEST_CASE("only regular files open, and reading stops at their end") {
  Folder folder;
  CHECK(has(error_of([&] { File::open_regular(folder.path); }), "got a folder"));
  CHECK(has(error_of([&] { File::open_regular("/dev/zero"); }), "expected a regular file"));
  CHECK(has(error_of([&] { File::open_regular(folder.path + "/none"); }), "No such file"));
  const std::string path = folder.path + "/f";
  write_bytes(path, 10);
  std::byte buffer[11];
  CHECK(has(error_of([&] { File::open_regular(path).read_at(0, buffer); }),
            "expected 11 bytes at byte 0, got 10"));
  CHECK(has(error_of([&] { read_file(path, 9); }), "expected at most 9 bytes, got 10"));
  CHECK(read_file(path, 10).size() == 10);
}

TEST_CASE("a map shows the file's bytes; an empty file has none") {
  Folder folder;
  const std::string path = folder.path + "/f";
  write_bytes(path, 100);
  const MappedFile file(path);
  CHECK(file.bytes().size() == 100);
  CHECK(static_cast<char>(file.bytes()[99]) == 'x');
  file.check_intact();
  write_bytes(folder.path + "/empty", 0);
  const MappedFile empty(folder.path + "/empty");
  CHECK(empty.bytes().empty());
  empty.check_intact();
  set_fault({.call = SystemCall::kMap, .nth = 1, .error_number = ENOMEM});
  CHECK(has(error_of([&] { MappedFile again(path); }), "cannot map 100 bytes: Cannot allocate memory"));
  clear_faults();
}

TEST_CASE("a file that is cut while mapped reads as zeros and is a named error") {
  Folder folder;
  const std::string path = folder.path + "/f";
  const size_t size = 1 << 20;
  write_bytes(path, size);
  MappedFile first(path);
  const MappedFile file(std::move(first));
  CHECK(static_cast<char>(file.bytes()[size - 1]) == 'x');
  REQUIRE(::truncate(path.c_str(), 5000) == 0);
  size_t sum = 0;
  for (const std::byte byte : file.bytes()) sum += static_cast<size_t>(byte);
  CHECK(sum == 5000 * size_t{'x'});
  CHECK(has(error_of([&] { file.check_intact(); }),
            path + ": the file changed while in use: expected 1048576"));
  CHECK(has(error_of([&] { check_mapped_files(); }), path));
  REQUIRE(::truncate(path.c_str(), size) == 0);  // grown back: the map was damaged all the same
  CHECK(has(error_of([&] { file.check_intact(); }), "could not be read while in use"));
}
