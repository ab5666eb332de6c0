// Damaged and unwilling surroundings: cut files, flipped bits, system calls and allocations that fail one by
// one.
#include <cerrno>
#include <chrono>
#include <new>
#include <random>

#include "lib/base/sha256.h"
#include "lib/base/system_calls.h"
#include "lib/store/checkpoint.h"
#include "lib/store/codec_file.h"
#include "lib/store/json_reader.h"
#include "lib/store/safetensors.h"
#include "tests/store/failing_allocation.h"
#include "tests/store/made_files.h"

using namespace drama3;
using namespace drama3::testing;

namespace {

const std::string kTiny = DRAMA3_TEST_DATA "/golden/tiny";
const std::vector<std::string> kNames = {"config.json",
                                         "tokenizer.json",
                                         "codec.pth",
                                         "model.safetensors.index.json",
                                         "model-00001-of-00002.safetensors",
                                         "model-00002-of-00002.safetensors"};

// The golden folder by links, in which single files are replaced.
struct LinkedModel : Folder {
  LinkedModel() {
    for (const std::string& name : kNames) link(name);
  }
  void link(const std::string& name) const {
    std::filesystem::remove(file(name));
    std::filesystem::create_symlink(kTiny + "/" + name, file(name));
  }
  void replace(const std::string& name, const std::string& content) const {
    std::filesystem::remove(file(name));
    write(name, content);
  }
};

// Opens everything that this layer reads and touches every tensor; returns names and shapes, and the digests
// of the codec's tensors, whose bytes are under a CRC.
std::string open_all(const std::string& path) {
  std::string shapes;
  Checkpoint checkpoint(path);
  JsonDocument::read(checkpoint.config_path(), kConfigLimits);
  JsonDocument::read(checkpoint.tokenizer_path(), kTokenizerLimits);
  CodecFile codec(checkpoint.codec_path());
  for (TensorMap* map : {static_cast<TensorMap*>(&checkpoint), static_cast<TensorMap*>(&codec)}) {
    for (const std::string& name : map->names()) {
      const std::optional<View> view = map->find_any(name);
      shapes += name + std::string(dtype_name(view->type)) + view->shape.text();
      if (map == &codec) shapes += sha256_hex({static_cast<const std::byte*>(view->data), view->bytes()});
    }
  }
  check_mapped_files();
  return shapes;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("each file cut at every sixteenth of its length is refused by name, quickly") {
  const LinkedModel model;
  REQUIRE(open_all(model.path) != "");
  for (const std::string& name : kNames) {
    const std::string whole = read_text(kTiny + "/" + name);
    for (size_t part = 0; part < 16; ++part) {
      CAPTURE(name);
      CAPTURE(part);
      model.replace(name, whole.substr(0, whole.size() * part / 16));
      const auto begin = std::chrono::steady_clock::now();
      CHECK(has(error_of([&] { open_all(model.path); }), name));
      CHECK(seconds_since(begin) < 1.0);
    }
    model.link(name);
  }
}

TEST_CASE("200 flipped bits in each file: an error that names it, or the same shapes") {
  const LinkedModel model;
  const std::string shapes = open_all(model.path);
  for (const std::string& name : kNames) {
    const std::string whole = read_text(kTiny + "/" + name);
    size_t refused = 0;
    for (uint32_t seed = 0; seed < 200; ++seed) {
      std::mt19937 random(seed);
      // Half of the flips hit the part that describes the rest: the first or last 32 kB.
      const size_t window = std::min<size_t>(whole.size(), seed % 2 == 0 ? whole.size() : 32768);
      const bool at_end = name == "codec.pth" && seed % 4 == 1;
      const size_t at = (at_end ? whole.size() - window : 0) + random() % window;
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << random() % 8));
      model.replace(name, flipped);
      CAPTURE(name);
      CAPTURE(seed);
      std::string seen;
      const std::string message = error_of([&] { seen = open_all(model.path); });
      if (message.empty()) {
        const bool describes_tensors = name != "config.json" && name != "tokenizer.json";
        if (describes_tensors) CHECK(seen == shapes);
      } else {
        ++refused;
        CHECK(has(message, model.path));
      }
    }
    MESSAGE(name, ": ", refused, " of 200 refused");
    CHECK(refused > 40);
    model.link(name);
  }
}

TEST_CASE("every open, read, stat and map failing in turn is a clean error") {
  const LinkedModel model;
  for (const SystemCall call : {SystemCall::kOpen, SystemCall::kRead, SystemCall::kStat, SystemCall::kMap}) {
    for (const bool from_there_on : {false, true}) {
      uint64_t nth = 1;
      for (;; ++nth) {
        REQUIRE(nth < 1000);
        set_fault({.call = call, .nth = nth, .error_number = EIO, .from_there_on = from_there_on});
        const std::string message = error_of([&] { open_all(model.path); });
        const bool reached = system_call_count(call) >= nth;
        clear_faults();
        if (!reached) break;
        CHECK(has(message, model.path));
      }
      CHECK(nth > 3);
      CHECK(error_of([&] { open_all(model.path); }) == "");
    }
  }
}

TEST_CASE("every allocation failing in turn leaves an exception and nothing else") {
  // A small folder, so that all allocations can be tried.
  Folder model;
  model.write("config.json", "{\"a\":[1,2,{\"b\":\"text\"}]}");
  model.write("tokenizer.json", "{}");
  model.write(
      "model.safetensors",
      safetensors(R"({"a_tensor_with_a_name_on_the_heap":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                  "data"));
  model.write(
      "codec.pth",
      zip_of({{"m/data.pkl",
               op::kProto + op::dict(op::text("t") + op::tensor(op::storage("0", 1), 0, {1}, {1})) + "."},
              {"m/data/0", "abcd"}}));
  for (const bool from_there_on : {false, true}) {
    uint64_t failed = 0;
    for (uint64_t nth = 1;; ++nth) {
      REQUIRE(nth < 10000);
      bool is_thrown = false;
      fail_allocation(nth, from_there_on);
      try {
        open_all(model.path);
      } catch (const std::bad_alloc&) {
        is_thrown = true;
      } catch (const std::exception&) {
        is_thrown = true;
      }
      fail_allocation(0, false);
      const bool reached = allocations_seen() >= nth;
      if (!reached) break;
      if (is_thrown) ++failed;
    }
    CHECK(failed > 50);
    CHECK(open_all(model.path) != "");
  }
}
