// The golden tiny checkpoint loads: names with and without their prefix, exact bytes, both scale types.
#include <doctest/doctest.h>

#include <fstream>

#include "lib/base/error.h"
#include "lib/base/sha256.h"
#include "lib/store/checkpoint.h"
#include "lib/store/codec_file.h"
#include "lib/store/tensor_file.h"

using namespace drama3;

namespace {

const std::string kGolden = DRAMA3_TEST_DATA "/golden";

// Digests of a tensor's bytes; the expected ones come from reading the files with Python's standard library.
std::string digest(const View& view) {
  return sha256_hex({static_cast<const std::byte*>(view.data), view.bytes()});
}

}  // namespace

TEST_CASE("the golden shards answer under both spellings and know what was not asked for") {
  Checkpoint checkpoint(kGolden + "/tiny/");
  CHECK(checkpoint.total_bytes() == 13223584);
  const std::vector<DType> bf16{DType::kBF16};
  const View with = checkpoint.need({{"model.language_model.embed_tokens.weight"}, {1024, 256}, bf16});
  const View without = checkpoint.need({{"model.embed_tokens.weight"}, {1024, 256}, bf16});
  CHECK(with.data == without.data);
  CHECK(checkpoint.used_bytes() == 1024 * 256 * 2);
  CHECK_FALSE(checkpoint.find({{"model.none"}, {1}, bf16}));
  CHECK(checkpoint.shape_of("lm_head.weight") == Shape{1024, 256});
  CHECK_THROWS_WITH_AS(
      checkpoint.need({{"lm_head.weight"}, {1024, 255}, bf16}),
      doctest::Contains("tensor lm_head.weight: expected BF16 [1024, 255], got BF16 [1024, 256]"), Error);
  CHECK_THROWS_WITH_AS(checkpoint.finish(), doctest::Contains(" unknown: "), Error);
  CHECK(digest(checkpoint.need({{"lm_head.weight"}, {1024, 256}, bf16})) ==
        "fa55389fa0c86f621c0eaf81fdba74360aa32fed3c18de5c7ab1a0d423e7930e");
  CHECK(digest(checkpoint.need({{"model.layers.0.linear_attn.A_log"}, {4}, {DType::kF32, DType::kBF16}})) ==
        "6e85cfc6e7d825c20dfc4635ad7b0012d251238c433df8fd9883b060ec5563b3");
}

TEST_CASE("matrices come with block scales of either type, or without") {
  Checkpoint checkpoint(kGolden + "/tiny");
  const StoredMatrix fp8 =
      checkpoint.need_matrix({"model.layers.0.mlp.experts.0.down_proj.weight"}, 256, 128);
  CHECK(fp8.weight.type == DType::kF8E4M3);
  CHECK(fp8.scale.type == DType::kF32);
  CHECK(fp8.scale.shape == Shape{2, 1});
  CHECK(digest(fp8.weight) == "ef71e2f1bf44eed1540d0752ac6e2cdd89b5a73fd2606ed590f9e69c0cd53261");
  CHECK(digest(fp8.scale) == "e50a2dc2328bfddf66fdac3a5c7140dc335081a557c8e0dfe78de480b56151d5");
  const StoredMatrix odd =
      checkpoint.need_matrix({"model.layers.1.mlp.experts.0.gate_proj.weight"}, 128, 256);
  CHECK(odd.scale.type == DType::kBF16);
  CHECK(digest(odd.scale) == "0e5db9a2b0de476c930d991bc4389a71a86c14a6a368f6a6e8d73b94a8463e72");
  const StoredMatrix plain = checkpoint.need_matrix({"audio_decoder_mtp.layers.8.eh_proj.weight"}, 256, 512);
  CHECK(plain.weight.type == DType::kBF16);
  CHECK(plain.scale.data == nullptr);
  CHECK(digest(plain.weight) == "87cee0874346123a7abe4850cdadd70ce90d494d8ec8318faf9fed7370562eed");
  checkpoint.refuse_non_finite();
}

TEST_CASE("the digests of the files and of the whole do not change") {
  const Checkpoint checkpoint(kGolden + "/tiny");
  const std::vector<FileHash> files = checkpoint.file_hashes();
  REQUIRE(files.size() == 7);
  uint64_t bytes = 0;
  std::string lines;
  for (const FileHash& file : files) {
    bytes += file.bytes;
    lines += file.sha256 + "  " + file.name + "\n";
  }
  CHECK(bytes == checkpoint.file_bytes());
  CHECK(files[0].name == "codec.pth");
  CHECK(files[0].sha256 == "49846ceb4bcc5cb9f5349b6f530cd6588c4e424c079a86f8127e735ce84bfc31");
  CHECK(checkpoint.hash() == sha256_hex(std::as_bytes(std::span(lines))));
}

TEST_CASE("every golden safetensors file opens on its own") {
  for (const char* name : {"backbone", "codec", "greedy", "reference", "sampler"}) {
    TensorFile file(kGolden + "/" + name + ".safetensors");
    CHECK(file.names().size() == file.size());
    CHECK(file.total_bytes() > 0);
    for (const std::string& tensor : file.names()) CHECK(file.tensor_named(tensor).data != nullptr);
    file.refuse_unused({});
    CHECK_THROWS_WITH_AS(file.tensor_named("none"), doctest::Contains("got no tensor of that name"), Error);
  }
}

TEST_CASE("the golden codec.pth answers with exact bytes and reads what is asked for only") {
  CodecFile codec(kGolden + "/tiny/codec.pth");
  CHECK(codec.size() == 400);
  const std::vector<DType> f32{DType::kF32};
  const View table =
      codec.need({{"quantizer.semantic_quantizer.quantizers.0.codebook.weight"}, {256, 8}, f32});
  CHECK(digest(table) == "b6c1b9530b852c33ad4b0b7a919e51d53260ffb2bb07206f4c5200cfec3baa5a");
  const View kernel =
      codec.need({{"generator.decoder.model.0.conv.parametrizations.weight.original1"}, {64, 64, 7}, f32});
  CHECK(digest(kernel) == "82e82327c05eec2bc9b364732a896db1efd062f4f5cd9bdc46d61019e6d554bb");
  CHECK(reinterpret_cast<uintptr_t>(table.data) % 64 == 0);  // in place, aligned as torch.save aligns
  CHECK_THROWS_WITH_AS(codec.refuse_unused({.prefixes = {"encoder."}, .suffixes = {"freqs_cis"}}),
                       doctest::Contains(" unknown: "), Error);
  CHECK_NOTHROW(codec.refuse_unused({.prefixes = {"encoder.", "quantizer.", "decoder."}, .suffixes = {}}));
}

TEST_CASE("every tensor of the golden codec.pth is listed with its shape in codec_keys.txt") {
  CodecFile codec(kGolden + "/tiny/codec.pth");
  std::ifstream keys(kGolden + "/codec_keys.txt");
  std::string line;
  size_t count = 0;
  while (std::getline(keys, line)) {
    const std::string name = line.substr(0, line.find(' '));
    const std::optional<View> view = codec.find_any(name);
    REQUIRE(view);
    CHECK(line == name + " " + view->shape.text() + " torch.float32");
    ++count;
  }
  CHECK(count == codec.size());
  codec.refuse_unused({});
  codec.refuse_non_finite();
}
