// Checkpoint folders made on the fly: what may be absent, index against shards, names, matrices and their
// scales.
#include "lib/store/checkpoint.h"

#include <cmath>

#include "tests/store/made_files.h"

using namespace drama3;
using namespace drama3::testing;

namespace {

// One safetensors file with a U8 tensor of four bytes under each name.
std::string shard_of(const std::vector<std::string>& names) {
  std::string header = "{";
  for (size_t i = 0; i < names.size(); ++i) {
    header += (i ? ",\"" : "\"") + names[i] + R"(":{"dtype":"U8","shape":[4],"data_offsets":[)" +
              std::to_string(4 * i) + "," + std::to_string(4 * i + 4) + "]}";
  }
  return safetensors(header + "}", std::string(4 * names.size(), 'd'));
}

// A folder with all files; tensors a and b in one shard, c in the other.
struct Model : Folder {
  Model() {
    for (const char* name : {"config.json", "tokenizer.json", "codec.pth"}) write(name, "{}");
    write("s1.safetensors", shard_of({"a", "b"}));
    write("s2.safetensors", shard_of({"c"}));
    index(R"("a":"s1.safetensors","b":"s1.safetensors","c":"s2.safetensors")");
  }
  void index(const std::string& map) const {
    write("model.safetensors.index.json", R"({"metadata":{"total_size":12},"weight_map":{)" + map + "}}");
  }
  void remove(const std::string& name) const { std::filesystem::remove(file(name)); }
  std::string refusal() const {
    return error_of([&] { Checkpoint checkpoint(path); });
  }
};

// A folder whose one safetensors file has this header and data.
struct SingleModel : Folder {
  SingleModel(const std::string& header, const std::string& data) {
    for (const char* name : {"config.json", "tokenizer.json", "codec.pth"}) write(name, "{}");
    write("model.safetensors", safetensors(header, data));
  }
};

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, size_t begin,
                  size_t end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

const std::vector<DType> kU8{DType::kU8};
const char* const kDownload = "huggingface-cli download fishaudio/drama-3 --local-dir ";

}  // namespace

TEST_CASE("a whole folder opens, through links too, and lists what was not asked for") {
  const Model model;
  CHECK(model.refusal() == "");
  Folder links;
  for (const auto& file : std::filesystem::directory_iterator(model.path)) {
    std::filesystem::create_symlink(file.path(), links.file(file.path().filename()));
  }
  Checkpoint checkpoint(links.path);
  checkpoint.need({{"a"}, {4}, kU8});
  CHECK(error_of([&] { checkpoint.finish(); }) ==
        links.path + ": expected only tensors that the model has, got 2 unknown: " + links.path +
            "/s1.safetensors: tensor b [4]; " + links.path + "/s2.safetensors: tensor c [4]");
  checkpoint.need({{"x", "b"}, {4}, kU8});
  checkpoint.need({{"c", "x"}, {4}, kU8});
  CHECK_NOTHROW(checkpoint.finish());
  CHECK(error_of([&] {
          checkpoint.need({{"x", "y"}, {2, 3}, {DType::kBF16, DType::kF32}});
        }) == links.path + ": tensor x or y: expected BF16 or F32 [2, 3], got no tensor of that name");
  CHECK(error_of([&] {
          checkpoint.need({{"a", "c"}, {4}, kU8});
        }) == links.path + "/s1.safetensors: tensor a: expected one spelling of this tensor, got c too");
}

TEST_CASE("what is no folder, or lacks a file, is refused with what was looked for and how to get it") {
  const std::string absent = error_of([] { Checkpoint checkpoint("/no/such/model"); });
  for (const char* part :
       {"/no/such/model: expected a folder with config.json", "tokenizer.json", "codec.pth",
        "model.safetensors", "model.safetensors.index.json", "No such file or directory", kDownload}) {
    CHECK(has(absent, part));
  }
  CHECK(has(error_of([] { Checkpoint checkpoint(""); }), "model folder: expected a folder with config.json"));
  for (const char* name : {"config.json", "tokenizer.json", "codec.pth"}) {
    const Model model;
    model.remove(name);
    CHECK(has(model.refusal(), std::string("got a folder without ") + name));
    CHECK(has(model.refusal(), kDownload + model.path));
  }
  const Model model;
  CHECK(has(error_of([&] { Checkpoint checkpoint(model.file("config.json")); }),
            "got something that is no folder"));
  model.remove("model.safetensors.index.json");
  CHECK(has(model.refusal(),
            "expected model.safetensors or model.safetensors.index.json with its shards, got neither"));
  model.write("model.safetensors", shard_of({"a"}));
  CHECK(model.refusal() == "");
  CHECK(has(error_of([&] { CheckpointFolder(model.path).file("none.json"); }),
            model.path + "/none.json: expected a file of the model"));
}

TEST_CASE("a missing, cut or foreign shard is named") {
  const Model missing;
  missing.remove("s2.safetensors");
  CHECK(has(missing.refusal(),
            missing.path + "/s2.safetensors: expected a file of the model, got no such file"));
  const Model cut;
  cut.write("s2.safetensors", shard_of({"c"}).substr(0, 40));
  CHECK(has(cut.refusal(), "s2.safetensors: safetensors header: expected 53 bytes, got a file with 32"));
  const Model pointer;
  pointer.write("s2.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n");
  CHECK(
      has(pointer.refusal(), "s2.safetensors: expected the file itself, got a Git LFS pointer of 63 bytes"));
  const Model length;
  length.write("s1.safetensors", std::string(8, '\xff'));
  CHECK(
      has(length.refusal(),
          "s1.safetensors: safetensors header length: expected at most 100000000, got 18446744073709551615"));
  const Model wide;
  wide.write("s2.safetensors", safetensors("{" + entry("c", "F64", "[4]", 0, 4) + "}", "dddd"));
  CHECK(has(wide.refusal(), "s2.safetensors: tensor c: expected 32 bytes for F64 [4], got 4"));
  const Model folder;
  folder.remove("s2.safetensors");
  std::filesystem::create_directory(folder.file("s2.safetensors"));
  CHECK(has(folder.refusal(), "s2.safetensors: expected a regular file, got a folder"));
  const Model index;
  index.write("model.safetensors.index.json", "version https://git-lfs.github.com/spec/v1\n");
  CHECK(has(index.refusal(), "index.json: expected the file itself, got a Git LFS pointer"));
}

TEST_CASE("index and shards agree both ways") {
  const Model model;
  model.index(R"("a":"s1.safetensors","c":"s2.safetensors")");
  CHECK(has(model.refusal(),
            "index.json: tensor b: expected the index to place it in s1.safetensors, got no entry"));
  model.index(R"("a":"s1.safetensors","b":"s2.safetensors","c":"s2.safetensors")");
  CHECK(
      has(model.refusal(), "tensor b: expected the index to place it in s1.safetensors, got s2.safetensors"));
  model.index(R"("a":"s1.safetensors","b":"s1.safetensors","c":"s2.safetensors","d":"s2.safetensors")");
  CHECK(has(model.refusal(),
            "/s2.safetensors: tensor d: expected it in this shard as the index says, got no such tensor"));
  model.index(R"("a":"s1.safetensors","a":"s1.safetensors")");
  CHECK(has(model.refusal(), "index.json: JSON: expected each key once in an object, got \"a\" twice"));
  model.index("");
  CHECK(has(model.refusal(), "index.json: weight_map: expected at least one tensor"));
  model.write("model.safetensors.index.json", "{}");
  CHECK(has(model.refusal(), "index.json: top level: expected the key \"weight_map\""));
}

TEST_CASE("shard names cannot leave the folder") {
  const Model model;
  for (const char* name : {"../s2.safetensors", "/tmp/s2", "x/s2.safetensors", "..", ".", "", "x\\\\s2",
                           "s2\\u0000.safetensors"}) {
    CAPTURE(name);
    model.index(R"("a":"s1.safetensors","b":"s1.safetensors","c":")" + std::string(name) + "\"");
    CHECK(has(model.refusal(), "weight_map.c: expected the plain name of a file in the same folder, got "));
  }
  model.index(R"("a":"s1.safetensors","b":"s1.safetensors","c":7)");
  CHECK(has(model.refusal(), "weight_map.c: expected the plain name of a file in the same folder, got 7"));
}

TEST_CASE("each name stands once over all shards, whatever its prefix") {
  const Model model;
  model.write("s2.safetensors", shard_of({"c", "a"}));
  CHECK(has(model.refusal(), "/s2.safetensors: tensor a: expected each name once, got it in " + model.path +
                                 "/s1.safetensors too"));
  model.write("s1.safetensors", shard_of({"model.language_model.norm", "b"}));
  model.write("s2.safetensors", shard_of({"model.norm"}));
  model.index(
      R"("model.language_model.norm":"s1.safetensors","b":"s1.safetensors","model.norm":"s2.safetensors")");
  CHECK(has(model.refusal(), "tensor model.norm: expected each name once, got it in " + model.path +
                                 "/s1.safetensors too as model.language_model.norm"));
}

TEST_CASE("both layouts at once are refused, and tensors of absent parts are ignored") {
  const Model both;
  both.write("model.safetensors", shard_of({"a"}));
  CHECK(has(both.refusal(), "expected model.safetensors or model.safetensors.index.json, got both"));
  const SingleModel model(
      "{" + entry("model.visual.x", "U8", "[1]", 0, 1) + "," + entry("mtp.y", "U8", "[1]", 1, 2) + "}", "ab");
  const Checkpoint checkpoint(model.path);
  CHECK_NOTHROW(checkpoint.finish());
}

TEST_CASE("FP8 matrices need block scales of the right shape, type and value") {
  // 130 x 129: 2 x 2 blocks.
  const size_t weight_bytes = 130 * 129;
  const auto model_with = [&](const std::string& scale_dtype, const std::string& scale_shape,
                              const std::string& scale_data) {
    return SingleModel("{" + entry("w.weight", "F8_E4M3", "[130,129]", 0, weight_bytes) + "," +
                           entry("w.weight_scale_inv", scale_dtype, scale_shape, weight_bytes,
                                 weight_bytes + scale_data.size()) +
                           "}",
                       std::string(weight_bytes, '8') + scale_data);
  };
  const auto refusal = [](const Folder& model) {
    Checkpoint checkpoint(model.path);
    return error_of([&] { checkpoint.need_matrix({"w.weight"}, 130, 129); });
  };
  const std::string one = little(0x3f80, 2);
  CHECK(refusal(model_with("BF16", "[2,2]", one + one + one + one)) == "");
  CHECK(has(refusal(model_with("BF16", "[1,4]", one + one + one + one)),
            "tensor w.weight_scale_inv: expected F32 or BF16 [2, 2], got BF16 [1, 4]"));
  CHECK(has(refusal(model_with("F16", "[2,2]", one + one + one + one)),
            "expected F32 or BF16 [2, 2], got F16 [2, 2]"));
  for (const uint64_t bad : {0x7f80u, 0xff80u, 0x7fc0u}) {
    CHECK(has(refusal(model_with("BF16", "[2,2]", one + one + one + little(bad, 2))),
              "model.safetensors: tensor w.weight_scale_inv: expected finite block scales, got NaN or "
              "infinity at index 3"));
  }
  const SingleModel bare("{" + entry("w.weight", "F8_E4M3", "[130,129]", 0, weight_bytes) + "}",
                         std::string(weight_bytes, '8'));
  CHECK(has(refusal(bare),
            "tensor w.weight_scale_inv: expected F32 or BF16 [2, 2], got no tensor of that name"));
  const SingleModel integers("{" + entry("w.weight", "I8", "[130,129]", 0, weight_bytes) + "}",
                             std::string(weight_bytes, '8'));
  CHECK(has(refusal(integers),
            "tensor w.weight: expected F8_E4M3 or BF16 or F16 or F32 [130, 129], got I8 [130, 129]"));
}

TEST_CASE("weights that are not finite are found by type, tensor and index") {
  const auto refusal = [](const std::string& dtype, int size, uint64_t bits) {
    const auto end = static_cast<size_t>(3 * size);
    const SingleModel model("{" + entry("t", dtype, "[3]", 0, end) + "}",
                            std::string(static_cast<size_t>(2 * size), '\0') + little(bits, size));
    Checkpoint checkpoint(model.path);
    checkpoint.find_any("t");
    return error_of([&] { checkpoint.refuse_non_finite(); });
  };
  CHECK(refusal("F32", 4, 0x3f800000) == "");
  CHECK(has(refusal("F32", 4, 0x7f800000),
            "tensor t: expected finite numbers, got NaN or infinity at index 2"));
  CHECK(has(refusal("F16", 2, 0x7c00), "at index 2"));
  CHECK(has(refusal("BF16", 2, 0x7fc1), "at index 2"));
  CHECK(has(refusal("F8_E4M3", 1, 0xff), "at index 2"));
  CHECK(has(refusal("F64", 8, 0x7ff0000000000000), "at index 2"));
  CHECK(refusal("F8_E4M3", 1, 0x7e) == "");
  CHECK(refusal("I64", 8, ~uint64_t{0}) == "");
}

TEST_CASE("a shard that is cut while mapped is a named error") {
  const Model model;
  const Checkpoint checkpoint(model.path);
  std::filesystem::resize_file(model.file("s2.safetensors"), 10);
  CHECK(has(error_of([] { check_mapped_files(); }),
            model.file("s2.safetensors") + ": the file changed while in use"));
}
