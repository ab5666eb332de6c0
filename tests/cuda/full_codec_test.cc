// The decoder of full size with random weights in F16 against the definition in F32, at the bars of an F16
// codec (tests/data/golden/README.md). On fibers the sizes are small.
#include <map>

#include "kernels/ref/ref_ops.h"
#include "lib/codec/decode.h"
#include "tests/cuda/rig.h"
#include "tests/synthetic/checkpoint_writer.h"

using namespace drama3;
using namespace drama3::cuda_test;

namespace {

constexpr int64_t kFrames = 2;

CodecSizes sizes() {
#ifdef DRAMA3_EMULATED
  return small_sizes().codec;
#else
  return full_sizes().codec;
#endif
}

using Stages = std::map<std::string, std::vector<float>, std::less<>>;

// The stages of frames on one backend, in calls of so many frames.
Stages decoded(Ops& ops, WeightSource& source, int64_t frames_per_call) {
  const codec::Weights weights = codec::load_weights(ops, source, {}, codec::Parts::kDecoder);
  codec::Decoder decoder(ops, weights, {.frames_per_call = frames_per_call, .frames = kFrames});
  Stages stages;
  decoder.observe([&](std::string_view stage, const View& rows) {
    std::vector<float>& all = stages[std::string(stage)];
    const std::vector<float> part = values_of(ops, rows);
    all.insert(all.end(), part.begin(), part.end());
  });
  std::vector<int32_t> numbers(static_cast<size_t>(kFrames * weights.codebooks()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i * 37 % 251);
  const Buffer codes = ops.allocate(DType::kI32, Shape{kFrames, weights.codebooks()});
  ops.upload(codes.view, View(numbers.data(), DType::kI32, codes.view.shape));
  const Buffer pcm = ops.allocate(ops.codec_type(), Shape{1, frames_per_call * weights.samples_per_frame});
  for (int64_t f = 0; f < kFrames; f += frames_per_call) {
    decoder.decode(pcm.view, codes.view.rows_from(f, frames_per_call));
  }
  return stages;
}

}  // namespace

TEST_CASE("cuda: the codec of full size meets the definition" * doctest::skip(no_device())) {
  RandomCodec source(sizes(), 1);
  RefOps ref;
  const Stages want = decoded(ref, source, kFrames);
  const auto cuda = make_cuda_ops({});
  const Stages got = decoded(*cuda, source, kFrames);
  for (const auto& [stage, rows] : want) {
    MESSAGE("codec ", stage, ": relative L2 ", relative_l2(got.at(stage), rows.data()));
  }
  CHECK(relative_l2(got.at("upsample.1"), want.at("upsample.1").data()) <= 3e-3);
  CHECK(relative_l2(got.at("pcm"), want.at("pcm").data()) <= 1e-2);
  CHECK(decoded(*cuda, source, 1).at("pcm") == got.at("pcm"));
}
