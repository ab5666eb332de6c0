// The codec against its reference data, stage by stage, and against itself for every chunking, on each host
// backend.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/targets.h"
#include "kernels/ref/ref_ops.h"
#include "tests/codec/codec_fixture.h"
#include "tests/codec/random_codec.h"

using namespace drama3;

namespace {

constexpr double kBar = 1e-5;  // golden/README.md: codec stages, pcm, encode.latent

std::vector<std::unique_ptr<Ops>> backends() {
  std::vector<std::unique_ptr<Ops>> all;
  all.push_back(std::make_unique<RefOps>());
  all.push_back(std::make_unique<CpuOps>(2));
  return all;
}

// Chunks of 1 to `most` that add up to `frames`.
std::vector<int64_t> random_chunks(int64_t frames, int64_t most, std::mt19937& random) {
  std::vector<int64_t> chunks;
  while (frames > 0) {
    chunks.push_back(std::min<int64_t>(frames, 1 + random() % static_cast<uint32_t>(most)));
    frames -= chunks.back();
  }
  return chunks;
}

std::vector<int32_t> random_codes(int64_t frames, int64_t codebooks, int64_t entries, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> codes(static_cast<size_t>(frames * codebooks));
  for (int32_t& code : codes) code = static_cast<int32_t>(random() % static_cast<uint32_t>(entries));
  return codes;
}

// Small, with everything that the tiny codec lacks: projections around the transformer, heads wider than it,
// other rates and factors.
CodecSizes unusual_sizes() {
  return {.latent = 24,
          .codebooks = 3,
          .entries = 50,
          .code_width = 5,
          .layers = 2,
          .transformer_width = 40,
          .inner = 64,
          .ffn = 36,
          .factors = {3, 1},
          .decoder_channels = 40,
          .rates = {3, 2, 5},
          .encoder_channels = 6,
          .type = DType::kF16};
}
constexpr codec::Config kUnusualConfig{.window_size = 4, .head_dim = 32, .encoder_window_size = 5};

}  // namespace

TEST_CASE("every decoder stage equals the reference") {
  TensorFile golden(golden_path("codec.safetensors"));
  const auto codes = reference_codes(golden, "codes");
  for (const auto& ops : backends()) {
    const TinyCodec tiny(*ops);
    const int64_t frames = static_cast<int64_t>(codes.size()) / tiny.weights.codebooks();
    codec::Decoder decoder(*ops, tiny.weights, {.frames_per_call = frames, .frames = frames});
    Stages stages;
    decoder.observe(collect(*ops, stages));
    decode_in_chunks(*ops, decoder, tiny.weights, codes, {frames});
    int compared = 0;
    for (const std::string& name : golden.names()) {
      if (!name.starts_with("fp32.")) continue;
      const std::string stage = name.substr(5);
      REQUIRE_MESSAGE(stages.count(stage) == 1, stage);
      const double error = relative_l2(stages[stage], reference_rows(golden, name));
      INFO(ops->name(), " ", stage, " is off by ", error);
      CHECK(error <= kBar);
      ++compared;
    }
    CHECK(compared == 15);
  }
}

TEST_CASE("encoding gives the reference's latent and exactly its codes, for every chunking") {
  TensorFile golden(golden_path("codec.safetensors"));
  auto wav = reference_rows(golden, "encode.wav");
  const auto codes = reference_codes(golden, "encode.codes");
  for (const auto& ops : backends()) {
    const TinyCodec tiny(*ops);
    const int64_t frames = static_cast<int64_t>(codes.size()) / tiny.weights.codebooks();
    CHECK(codec::encode_recording(*ops, tiny.weights, wav) == codes);
    CHECK(codec::encode_recording(*ops, tiny.weights, {}).empty());
    wav.resize(static_cast<size_t>(frames * tiny.weights.samples_per_frame));
    codec::Encoder encoder(*ops, tiny.weights, {.frames_per_call = frames, .frames = frames});
    Stages stages;
    encoder.observe(collect(*ops, stages));
    CHECK(encode_in_chunks(*ops, encoder, tiny.weights, wav, {frames}) == codes);
    const auto whole = stages["encode.latent"];
    const double error = relative_l2(whole, reference_rows(golden, "encode.latent"));
    INFO(ops->name(), " encode.latent is off by ", error);
    CHECK(error <= kBar);
    std::mt19937 random(7);
    for (int run = 0; run < 4; ++run) {
      stages.clear();
      encoder.reset();
      CHECK(encode_in_chunks(*ops, encoder, tiny.weights, wav, random_chunks(frames, 5, random)) == codes);
      CHECK(stages["encode.latent"] == whole);
    }
  }
}

TEST_CASE("the samples are the same bits for every chunking") {
  TensorFile golden(golden_path("codec.safetensors"));
  const auto codes = reference_codes(golden, "codes");
  for (const auto& ops : backends()) {
    const TinyCodec tiny(*ops);
    const int64_t frames = static_cast<int64_t>(codes.size()) / tiny.weights.codebooks();
    codec::Decoder decoder(*ops, tiny.weights, {.frames_per_call = frames, .frames = frames});
    const auto whole = decode_in_chunks(*ops, decoder, tiny.weights, codes, {frames});
    CHECK(std::all_of(whole.begin(), whole.end(), [](float x) { return x > -1.0f && x < 1.0f; }));
    const auto again = [&](const std::vector<int64_t>& chunks) {
      decoder.reset();
      return decode_in_chunks(*ops, decoder, tiny.weights, codes, chunks) == whole;
    };
    for (int64_t first = 1; first < frames; ++first) CHECK(again({first, frames - first}));
    for (int64_t each : {1, 2, 3, 4, 6}) {
      CHECK(again(std::vector<int64_t>(static_cast<size_t>(frames / each), each)));
    }
    std::mt19937 random(11);
    for (int run = 0; run < 5; ++run) CHECK(again(random_chunks(frames, 5, random)));
  }
}

TEST_CASE("seams of a long utterance: windows of 1 to 128 frames give the bits of one call") {
  CodecSizes sizes;
  sizes.decoder_channels = 32;
  sizes.latent = sizes.transformer_width = sizes.inner = 64;
  sizes.ffn = 32;
  sizes.encoder_channels = 0;
  RandomCodec source(sizes, 3);
  CpuOps ops(2);
  const auto weights =
      codec::load_weights(ops, source, {.window_size = 32, .head_dim = 64}, codec::Parts::kDecoder);
  constexpr int64_t kFrames = 300;  // the ring of post_module's window wraps many times
  const auto codes = random_codes(kFrames, sizes.codebooks, sizes.entries, 5);
  codec::Decoder whole(ops, weights, {.frames_per_call = kFrames, .frames = kFrames});
  const auto expected = decode_in_chunks(ops, whole, weights, codes, {kFrames});
  REQUIRE(expected.size() == static_cast<size_t>(kFrames * 2048));
  codec::Decoder windowed(ops, weights, {.frames_per_call = 128, .frames = kFrames});
  for (int64_t window : {1, 32, 64, 128}) {
    std::vector<int64_t> chunks(static_cast<size_t>(kFrames / window), window);
    if (kFrames % window != 0) chunks.push_back(kFrames % window);
    windowed.reset();
    CHECK(decode_in_chunks(ops, windowed, weights, codes, chunks) == expected);
  }
}

TEST_CASE("a codec of unusual sizes decodes and encodes alike on both backends and for every chunking") {
  RandomCodec source(unusual_sizes(), 4);
  constexpr int64_t kFrames = 17;
  const auto codes = random_codes(kFrames, 3, 50, 6);
  std::vector<float> reference_pcm, reference_latent;
  for (const auto& ops : backends()) {
    const auto weights = codec::load_weights(*ops, source, kUnusualConfig, codec::Parts::kDecoderAndEncoder);
    CHECK(weights.samples_per_frame == 90);
    codec::Decoder decoder(*ops, weights, {.frames_per_call = kFrames, .frames = kFrames});
    codec::Encoder encoder(*ops, weights, {.frames_per_call = kFrames, .frames = kFrames});
    Stages stages;
    encoder.observe(collect(*ops, stages));
    const auto pcm = decode_in_chunks(*ops, decoder, weights, codes, {kFrames});
    const auto coded = encode_in_chunks(*ops, encoder, weights, pcm, {kFrames});
    const auto latent = stages["encode.latent"];
    if (reference_pcm.empty()) {
      reference_pcm = pcm;
      reference_latent = latent;
    }
    CHECK(relative_l2(pcm, reference_pcm) <= kBar);
    CHECK(relative_l2(latent, reference_latent) <= kBar);
    std::mt19937 random(8);
    for (int run = 0; run < 5; ++run) {
      const auto chunks = random_chunks(kFrames, 6, random);
      decoder.reset();
      encoder.reset();
      CHECK(decode_in_chunks(*ops, decoder, weights, codes, chunks) == pcm);
      CHECK(encode_in_chunks(*ops, encoder, weights, pcm, chunks) == coded);
    }
  }
}

TEST_CASE("the CPU's samples depend on neither threads nor instruction set") {
  TensorFile golden(golden_path("codec.safetensors"));
  const auto codes = reference_codes(golden, "codes");
  std::vector<float> expected;
  for (const std::string& set : instruction_sets()) {
    select_instruction_set(set);
    for (int threads : {1, 2, 5}) {
      CpuOps ops(threads);
      const TinyCodec tiny(ops);
      codec::Decoder decoder(ops, tiny.weights, {.frames_per_call = 12, .frames = 12});
      const auto pcm = decode_in_chunks(ops, decoder, tiny.weights, codes, {1, 11});
      if (expected.empty()) expected = pcm;
      CHECK_MESSAGE(pcm == expected, set, " with ", threads, " threads");
    }
  }
  select_instruction_set("");
}

TEST_CASE("codes outside their codebook are counted and decode as the entry they are clamped to") {
  RefOps ops;
  const TinyCodec tiny(ops);
  std::vector<int32_t> codes(20, 5);
  codes[0] = 256;  // the semantic codebook has 256 entries, the others 64
  codes[13] = 64;
  codes[19] = -1;
  CHECK(codec::count_out_of_range(tiny.weights, View(codes.data(), DType::kI32, Shape{2, 10})) == 3);
  codec::Decoder decoder(ops, tiny.weights, {.frames_per_call = 2, .frames = 2});
  const auto pcm = decode_in_chunks(ops, decoder, tiny.weights, codes, {2});
  codes[0] = 255;
  codes[13] = 63;
  codes[19] = 0;
  CHECK(codec::count_out_of_range(tiny.weights, View(codes.data(), DType::kI32, Shape{2, 10})) == 0);
  decoder.reset();
  CHECK(decode_in_chunks(ops, decoder, tiny.weights, codes, {2}) == pcm);
}
