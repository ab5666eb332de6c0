// The written checkpoint has the tensors of the generator, opens like any other, and speaks.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "lib/base/sha256.h"
#include "lib/engine/engine.h"
#include "lib/store/checkpoint.h"
#include "tests/audio/scratch_folder.h"
#include "tests/synthetic/checkpoint_writer.h"

using namespace drama3;

namespace {

constexpr const char* kTokenizer = DRAMA3_TEST_DATA "/golden/tiny/tokenizer.json";

std::string digest(const View& view) {
  Sha256 hash;
  hash.update({static_cast<const std::byte*>(view.data), view.bytes()});
  return hash.hex();
}

}  // namespace

TEST_CASE("synthetic: tensors in the file are those of the generator, whatever its pool and shards") {
  const SyntheticSizes sizes = small_sizes();
  const ScratchFolder scratch;
  const std::string folder = scratch / "model";
  const uint64_t bytes = write_synthetic_checkpoint(folder, sizes, kTokenizer, 3, /*shard_bytes=*/1 << 20);
  Checkpoint checkpoint(folder);
  CHECK(bytes > checkpoint.total_bytes());
  REQUIRE(std::filesystem::exists(folder + "/model.safetensors.index.json"));

  cuda_test::SyntheticSource source(sizes.tower, 3 << 20);
  size_t seen = 0;
  for (const std::string& name : checkpoint.names()) {
    if (name.ends_with("_scale_inv")) continue;
    const View stored = *checkpoint.find_any(name);
    const View made = name.find(".experts.") != std::string::npos
                          ? source.need_matrix({name}, stored.rows(), stored.cols()).weight
                          : source.need({{name}, stored.shape, {}});
    CHECK_MESSAGE((made.type == stored.type && std::memcmp(made.data, stored.data, stored.bytes()) == 0),
                  name);
    ++seen;
  }
  CHECK(seen > 200);
  const StoredMatrix expert = source.need_matrix({"model.layers.2.mlp.experts.5.up_proj.weight"}, 128, 256);
  CHECK(digest(expert.scale) ==
        digest(*checkpoint.find_any("model.layers.2.mlp.experts.5.up_proj.weight_scale_inv")));
  // On every machine and in every build.
  CHECK(digest(expert.weight) == "826b2ee5d0bbb12a4c1bc0658c44713f5ccd3f3d491d1cbe85b0847d67d4e244");
}

TEST_CASE("synthetic: the engine loads the written checkpoint and makes frames") {
  const ScratchFolder scratch;
  const std::string folder = scratch / "model";
  write_synthetic_checkpoint(folder, small_sizes(), kTokenizer, 2);
  const std::unique_ptr<Engine> engine = Engine::open({.model = folder, .device = "cpu", .threads = 1});
  SpeechRequest request;
  request.text = "Hi.";
  request.seed = 1;
  request.max_frames = 3;
  const SpeechResult result = engine->speak(request, {});
  CHECK(result.frames == 3);
}
