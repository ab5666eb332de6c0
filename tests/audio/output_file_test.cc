// Outputs: complete or absent, mode kept, links followed, checked early, every failing call survived.
#include "lib/audio/output_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <thread>

#include "lib/base/system_calls.h"
#include "tests/audio/scratch_folder.h"

namespace drama3 {
namespace {

std::string refusal_of(const std::string& path) {
  try {
    check_output(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("an output replaces the file only when it is committed") {
  const ScratchFolder folder;
  put_file(folder / "out", "old");
  {
    OutputFile file(check_output(folder / "out"));
    file.write("half");
    CHECK(folder.entries() == 2);
    CHECK(bytes_of(folder / "out") == "old");
  }
  CHECK(folder.entries() == 1);
  CHECK(bytes_of(folder / "out") == "old");
  {
    OutputFile file(check_output(folder / "out"));
    file.write("whole text");
    file.write_at(0, std::as_bytes(std::span("W", 1)));
    file.commit();
  }
  CHECK(bytes_of(folder / "out") == "Whole text");
  CHECK(folder.entries() == 1);
}

TEST_CASE("the mode of an existing file is kept, a new one obeys the umask") {
  const ScratchFolder folder;
  put_file(folder / "old", "x");
  ::chmod((folder / "old").c_str(), 0640);
  const mode_t mask = ::umask(077);
  for (const char* name : {"old", "new"}) {
    OutputFile file(check_output(folder / name));
    file.write("y");
    file.commit();
    struct ::stat status {};
    ::stat((folder / name).c_str(), &status);
    CHECK((status.st_mode & 07777) == (std::string(name) == "old" ? 0640u : 0600u));
  }
  ::umask(mask);
}

TEST_CASE("symbolic links are followed, also to a file that does not exist yet") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "far");
  std::filesystem::create_symlink("far/target", folder / "link");
  std::filesystem::create_symlink("link", folder / "link2");
  for (const char* text : {"one", "two"}) {
    OutputFile file(check_output(folder / "link2"));
    file.write(text);
    file.commit();
    CHECK(bytes_of(folder / "far/target") == text);
  }
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(std::filesystem::is_symlink(folder / "link2"));
  std::filesystem::create_symlink("round", folder / "round");
  CHECK(contains(refusal_of(folder / "round"), "Too many levels of symbolic links"));
}

TEST_CASE("folders and permissions are refused with the system's words") {
  const ScratchFolder folder;
  put_file(folder / "locked", "keep");
  ::chmod((folder / "locked").c_str(), 0444);
  CHECK(contains(refusal_of(folder / "locked"), "Permission denied"));
  CHECK(contains(refusal_of(folder / "."), "Is a directory"));
  CHECK(contains(refusal_of(folder / "none/x.wav"), "No such file or directory"));
  CHECK(contains(refusal_of(folder / "locked/x.wav"), "Not a directory"));
  CHECK(contains(refusal_of(""), "expected"));
  CHECK(contains(refusal_of(folder / "x/"), "expected"));
  CHECK(refusal_of(folder / "fine") == "accepted");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a device is written directly, and a full one is an error") {
  OutputFile null(check_output("/dev/null"));
  null.write("gone");
  CHECK_FALSE(null.seekable());
  null.commit();
  OutputFile full(check_output("/dev/full"));
  CHECK_THROWS_WITH_AS(full.write("lost"),
                       "/dev/full: expected to write 4 bytes at 0, got: No space left on device (28)", Error);
}

TEST_CASE("a FIFO is written directly and its lost reader is told apart") {
  const ScratchFolder folder;
  ::mkfifo((folder / "pipe").c_str(), 0600);
  std::thread reader([&] {
    const int fd = ::open((folder / "pipe").c_str(), O_RDONLY);
    char byte;
    CHECK(::read(fd, &byte, 1) == 1);
    ::close(fd);
  });
  ::signal(SIGPIPE, SIG_IGN);
  OutputFile file(check_output(folder / "pipe"));
  file.write("a");
  reader.join();
  CHECK_THROWS_AS(file.write("b"), ReaderGone);
  CHECK(folder.entries() == 1);
}

TEST_CASE("a handler for signals finds every unfinished output") {
  const ScratchFolder folder;
  OutputFile first(check_output(folder / "a"));
  OutputFile second(check_output(folder / "b"));
  CHECK(folder.entries() == 2);
  remove_unfinished_outputs();
  CHECK(folder.entries() == 0);
}

TEST_CASE("whatever call fails, the old output stays and nothing new does") {
  const ScratchFolder folder;
  for (const SystemCall call : {SystemCall::kOpen, SystemCall::kStat, SystemCall::kWrite, SystemCall::kSync,
                                SystemCall::kClose, SystemCall::kRename, SystemCall::kUnlink}) {
    for (const bool from_there_on : {false, true}) {
      bool failed = true;
      for (uint64_t nth = 1; failed; ++nth) {
        REQUIRE(nth < 20);
        put_file(folder / "out", "old");
        set_fault({.call = call, .nth = nth, .error_number = EIO, .from_there_on = from_there_on});
        failed = false;
        try {
          OutputFile file(check_output(folder / "out"));
          file.write("new ");
          file.write("text");
          file.commit();
        } catch (const Error& error) {
          failed = true;
          CHECK(contains(error.what(), "Input/output error"));
        }
        clear_faults();
        CHECK(folder.entries() == 1);
        CHECK(bytes_of(folder / "out") == (failed ? "old" : "new text"));
      }
    }
  }
}

}  // namespace drama3
