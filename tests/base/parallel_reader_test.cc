// Parts of files on several threads: direct, refused, failing, cut; and copies of memory.
#include "lib/base/parallel_reader.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "lib/base/error.h"
#include "lib/base/system_calls.h"
#include "tests/audio/scratch_folder.h"

namespace drama3 {
namespace {

constexpr size_t kFileBytes = (1 << 20) + 777;

std::string file_content() {
  std::string content(kFileBytes, '\0');
  uint32_t state = 1;
  for (char& c : content) c = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return content;
}

struct Bench {
  Bench() { put_file(path, content); }
  ScratchFolder folder;
  std::string path = folder / "weights";
  std::string content = file_content();
  // Room for all blocks of any range.
  std::unique_ptr<std::byte, void (*)(void*)> out{
      static_cast<std::byte*>(std::aligned_alloc(kDirectAlignment, 2 << 20)), std::free};

  bool same(uint64_t offset, uint64_t count) const {
    return std::memcmp(out.get() + offset % kDirectAlignment, content.data() + offset, count) == 0;
  }
};

std::string failure_of(SourceFile& file, uint64_t offset, uint64_t count, std::byte* out) {
  try {
    file.read(offset, count, out, /*cached=*/false);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE(
    "a source file gives the same bytes directly, through the cache, and when direct reads are refused") {
  Bench bench;
  const MappedFile mapped(bench.path);
  const auto all_ranges = [&](SourceFile& file, bool cached) {
    uint64_t direct = 0;
    for (const uint64_t offset : {0, 1, 4095, 4096, 12345, 999999}) {
      for (const uint64_t count : {uint64_t{1}, uint64_t{4096}, uint64_t{5000}, kFileBytes - offset}) {
        std::memset(bench.out.get(), 0, 2 << 20);
        direct += file.read(offset, count, bench.out.get(), cached) ? 1 : 0;
        CHECK(bench.same(offset, count));
      }
    }
    return direct;
  };
  SourceFile file(mapped, DirectReads::kAlways);
  if (file.is_direct()) CHECK(all_ranges(file, /*cached=*/false) == 24);
  CHECK(all_ranges(file, /*cached=*/true) == 0);

  set_fault({.call = SystemCall::kReadDirect, .nth = 3, .error_number = EINVAL});
  SourceFile refusing(mapped, DirectReads::kAlways);
  if (refusing.is_direct()) CHECK(all_ranges(refusing, false) == 2);  // once refused, not asked again
  CHECK_FALSE(refusing.is_direct());
  set_fault({.call = SystemCall::kOpenDirect, .nth = 1, .error_number = EINVAL});
  SourceFile plain(mapped, DirectReads::kAlways);
  clear_faults();
  CHECK_FALSE(plain.is_direct());
  CHECK(all_ranges(plain, false) == 0);
}

TEST_CASE("another file under the path is not read in place of the mapped one") {
  Bench bench;
  const MappedFile mapped(bench.path);
  std::filesystem::remove(bench.path);
  put_file(bench.path, std::string(kFileBytes, 'x'));
  SourceFile file(mapped, DirectReads::kAlways);
  CHECK_FALSE(file.is_direct());
  file.read(0, kFileBytes, bench.out.get(), false);
  CHECK(bench.same(0, kFileBytes));
}

TEST_CASE("a read error and a cut file are errors with path and byte") {
  Bench bench;
  const MappedFile mapped(bench.path);
  SourceFile file(mapped, DirectReads::kAlways), plain(mapped, DirectReads::kNever);
  if (file.is_direct()) {
    set_fault({.call = SystemCall::kReadDirect, .nth = 1, .error_number = EIO});
    CHECK(failure_of(file, 8000, 100, bench.out.get()) ==
          bench.path + ": cannot read at byte 4096: Input/output error (5)");
  }
  set_fault({.call = SystemCall::kRead, .nth = 1, .error_number = EIO});
  CHECK(failure_of(plain, 8000, 100, bench.out.get()) ==
        bench.path + ": cannot read at byte 8000: Input/output error (5)");
  clear_faults();
  std::filesystem::resize_file(bench.path, 9000);
  for (SourceFile* each : {&file, &plain}) {
    CHECK(failure_of(*each, 8000, 5000, bench.out.get()) ==
          bench.path + ": short read: expected 5000 bytes at byte 8000, got 1000");
    CHECK(failure_of(*each, 20000, 10, bench.out.get()) ==
          bench.path + ": short read: expected 10 bytes at byte 20000, got 0");
  }
}

TEST_CASE("batches are read by the threads, errors stay with their batch, copies are whole") {
  Bench bench;
  const MappedFile mapped(bench.path);
  const auto file = std::make_shared<SourceFile>(mapped, DirectReads::kAlways);
  ParallelReader reader(3);
  std::vector<ReadBatch> batches(20);
  std::vector<std::unique_ptr<std::byte, void (*)(void*)>> outs;
  for (size_t i = 0; i < batches.size(); ++i) {
    outs.emplace_back(static_cast<std::byte*>(std::aligned_alloc(kDirectAlignment, 1 << 20)), std::free);
    const uint64_t offset = i == 7 ? kFileBytes : i * 40000;  // one lies past the end
    batches[i].ranges.push_back({file, offset, 60000, outs.back().get(), false});
    reader.start(batches[i]);
  }
  for (size_t i = 0; i < batches.size(); ++i) {
    reader.wait(batches[i]);
    CHECK(reader.is_done(batches[i]));
    CHECK((batches[i].error != nullptr) == (i == 7));
    if (i == 7) continue;
    const std::byte* got = outs[i].get() + i * 40000 % kDirectAlignment;
    CHECK(std::memcmp(got, bench.content.data() + i * 40000, 60000) == 0);
  }
  CHECK(reader.counts().direct + reader.counts().cached == 19 * 60000);
  for (const uint64_t count : {uint64_t{1}, uint64_t{65536}, uint64_t{65537}, uint64_t{kFileBytes}}) {
    std::memset(bench.out.get(), 0, 2 << 20);
    reader.copy(bench.out.get(), mapped.bytes().data(), count);
    CHECK(bench.same(0, count));
    CHECK(bench.out.get()[count] == std::byte{0});
  }
  reader.stop();
  reader.start(batches[0]);  // threads come back when there is work
  reader.wait(batches[0]);
  CHECK(batches[0].error == nullptr);
}

TEST_CASE("a map is found by any of its bytes, whole ranges only") {
  Bench bench;
  const MappedFile mapped(bench.path);
  const std::byte* begin = mapped.bytes().data();
  const auto place = mapped_place(begin + 500, 1000);
  REQUIRE(place.has_value());
  CHECK(place->file == &mapped);
  CHECK(place->offset == 500);
  CHECK_FALSE(mapped_place(begin + 500, kFileBytes).has_value());
  CHECK_FALSE(mapped_place(bench.content.data(), 1).has_value());
  const MappedFile again(bench.path);
  CHECK(again.serial() != mapped.serial());
}

}  // namespace drama3
