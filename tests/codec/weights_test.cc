// Binding of the codec's tensors: what is asked for, what may stay unused, and errors that name the tensor.
#include <doctest/doctest.h>

#include <functional>
#include <set>

#include "kernels/ref/ref_ops.h"
#include "lib/codec/fold.h"
#include "tests/codec/codec_fixture.h"
#include "tests/codec/random_codec.h"

using namespace drama3;

namespace {

CodecSizes small_sizes() {
  CodecSizes sizes;
  sizes.latent = sizes.transformer_width = sizes.inner = 64;
  sizes.ffn = 16;
  sizes.entries = 8;
  sizes.codebooks = 3;
  sizes.decoder_channels = 16;
  sizes.encoder_channels = 2;
  return sizes;
}

std::string error_of(const std::function<void(RandomCodec&)>& damage, const codec::Config& config = {}) {
  RandomCodec source(small_sizes(), 1);
  damage(source);
  RefOps ops;
  try {
    codec::load_weights(ops, source, config, codec::Parts::kDecoderAndEncoder);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE(
    "decoder and encoder ask for every tensor of the file, the decoder alone for all but the encoder's") {
  RefOps ops;
  CodecFile both(golden_path("tiny/codec.pth"));
  const auto weights = codec::load_weights(ops, both, kTinyConfig, codec::Parts::kDecoderAndEncoder);
  CHECK_NOTHROW(both.refuse_unused({}));
  CHECK(weights.codebooks() == 10);
  CHECK(weights.samples_per_frame == 2048);
  CodecFile decoder_only(golden_path("tiny/codec.pth"));
  const auto decoder = codec::load_weights(ops, decoder_only, kTinyConfig, codec::Parts::kDecoder);
  CHECK_THROWS_AS(decoder_only.refuse_unused({}), Error);
  const codec::UnusedNames unused = codec::unused_names(decoder);
  CHECK_NOTHROW(decoder_only.refuse_unused({.prefixes = unused.prefixes, .suffixes = unused.suffixes}));
}

TEST_CASE("every tensor that is missing is an error") {
  CHECK(error_of([](RandomCodec&) {}) == "");
  // Parts counted by these tensors: without the last one there are fewer of them, and what is left over is
  // refused as unused by the source.
  const std::set<std::string> counted = {"quantizer.quantizer.quantizers.0.codebook.weight",
                                         "quantizer.quantizer.quantizers.1.codebook.weight",
                                         "quantizer.post_module.layers.1.attention.wqkv.weight",
                                         "quantizer.pre_module.layers.1.attention.wqkv.weight",
                                         "encoder.block.4.block.5.layers.1.attention.wqkv.weight",
                                         "encoder.block.4.block.5.norm.weight"};
  for (const std::string& name : RandomCodec(small_sizes(), 1).names()) {
    INFO(name);
    CHECK((error_of([&](RandomCodec& source) { source.remove(name); }) == "") == (counted.count(name) != 0));
  }
}

TEST_CASE("shapes that contradict each other are errors that name tensor, expected and got") {
  const auto reshaped = [](const char* name, const Shape& shape) {
    return error_of([&](RandomCodec& source) { source.reshape(name, shape); });
  };
  const std::string channels =
      reshaped("decoder.model.1.block.2.block.1.conv.parametrizations.weight.original1", Shape{8, 9, 7});
  CHECK(channels.find("expected [8, 8, 7], got [8, 9, 7]") != std::string::npos);
  CHECK(channels.find("decoder.model.1.block.2.block.1.conv") != std::string::npos);
  const std::string odd =
      reshaped("decoder.model.1.block.1.conv.parametrizations.weight.original1", Shape{16, 8, 15});
  CHECK(odd.find("expected an even kernel") != std::string::npos);
  const std::string kernel =
      reshaped("decoder.model.0.conv.parametrizations.weight.original1", Shape{16, 64, 5});
  CHECK(kernel.find("expected kernel 7, got [16, 64, 5]") != std::string::npos);
  const std::string rank = reshaped("quantizer.quantizer.quantizers.0.codebook.weight", Shape{8, 8, 1});
  CHECK(rank.find("expected 2 dimensions above 0, got [8, 8, 1]") != std::string::npos);
  const std::string heads = error_of([](RandomCodec&) {}, {.head_dim = 48});
  CHECK(heads.find("expected rows for q, k and v of heads 48 wide, got [192, 64]") != std::string::npos);
  const std::string frame = reshaped("quantizer.downsample.0.0.conv.weight", Shape{64, 64, 4});
  CHECK(frame.find("a frame of 2048 samples, as the decoder does, got 4096") != std::string::npos);
  const std::string huge = reshaped("quantizer.upsample.0.0.conv.weight", Shape{64, 64, 4096});
  CHECK(huge.find("expected at most 1048576 samples a frame") != std::string::npos);
}

TEST_CASE("weight norm is g v / ||v|| over all axes but the first, in both spellings") {
  CodecSizes sizes;
  RandomCodec source(sizes, 1);
  const auto weight = codec::fold_conv_weight(source, "decoder.model.6.conv", Shape{1, 16, 7});
  const auto g = codec::widen(
      source.need({{"decoder.model.6.conv.parametrizations.weight.original0"}, Shape{1, 1, 1}, {}}));
  double squares = 0.0;
  for (float value : weight) squares += static_cast<double>(value) * value;
  CHECK(std::sqrt(squares) == doctest::Approx(g[0]).epsilon(1e-6));
  const auto projection =
      codec::fold_conv_weight(source, "quantizer.quantizer.quantizers.0.out_proj", Shape{128, 8, 1});
  CHECK(projection.size() == 128 * 8);
}
