// The codec on CUDA: the FP16 reference run, and the same samples for every chunking.
#include "lib/codec/decode.h"
#include "lib/store/codec_file.h"
#include "lib/store/tensor_file.h"
#include "tests/cuda/rig.h"

using namespace drama3;
using namespace drama3::cuda_test;

namespace {

struct TinyDecoder {
  std::unique_ptr<Ops> ops = make_cuda_ops({});
  CodecFile file{golden_path("tiny/codec.pth")};
  codec::Weights weights = codec::load_weights(
      *ops, file, {.window_size = 8, .head_dim = 32, .encoder_window_size = 16}, codec::Parts::kDecoder);
  codec::Decoder decoder{*ops, weights, {.frames_per_call = 16, .frames = 64}};

  // PCM of codes [codebooks, frames] in calls of chunks[0], ... frames over scratch of NaN.
  std::vector<float> decode(const View& codes, const std::vector<int64_t>& chunks) {
    decoder.reset();
    std::vector<float> pcm;
    int64_t frame = 0;
    for (int64_t count : chunks) {
      std::vector<int32_t> rows;
      for (int64_t f = frame; f < frame + count; ++f) {
        for (int64_t k = 0; k < codes.rows(); ++k) rows.push_back(codes.row<int32_t>(k)[f]);
      }
      const Buffer in = ops->allocate(DType::kI32, Shape{count, codes.rows()});
      const Buffer out = ops->allocate(DType::kF16, Shape{count * weights.samples_per_frame});
      ops->upload(in.view, View(rows.data(), DType::kI32, in.view.shape));
      ops->fill(out.view, 0xff);
      decoder.spoil_scratch();
      decoder.decode(out.view, in.view);
      std::vector<float> samples(static_cast<size_t>(out.view.elements()));
      ops->download(View(samples.data(), DType::kF32, out.view.shape), out.view);
      pcm.insert(pcm.end(), samples.begin(), samples.end());
      frame += count;
    }
    return pcm;
  }
};

}  // namespace

TEST_CASE("cuda: the codec meets the FP16 reference within 1e-2, stage by stage within 3e-3" *
          doctest::skip(no_device())) {
  TinyDecoder tiny;
  TensorFile golden(golden_path("codec.safetensors"));
  tiny.decoder.observe([&](std::string_view stage, const View& rows) {
    if (stage != "z_q" && stage != "post" && stage != "upsample.1") return;
    const View want = golden.tensor_named(join("fp16.", stage));  // [channels, time]
    const std::vector<float> got = values_of(*tiny.ops, rows);
    std::vector<float> turned(got.size());
    for (int64_t t = 0; t < want.cols(); ++t) {
      for (int64_t c = 0; c < want.rows(); ++c) {
        turned[static_cast<size_t>(t * want.rows() + c)] = want.row<float>(c)[t];
      }
    }
    const double error = relative_l2(got, turned.data());
    MESSAGE(std::string(stage), ": relative L2 ", error);
    CHECK(error <= 3e-3);
  });
  const std::vector<float> pcm = tiny.decode(golden.tensor_named("codes"), {12});
  const View want = golden.tensor_named("fp16.pcm");
  REQUIRE(static_cast<int64_t>(pcm.size()) == want.elements());
  const double error = relative_l2(pcm, want.row<float>(0));
  MESSAGE("pcm: relative L2 ", error);
  CHECK(error <= 1e-2);
}

TEST_CASE("cuda: every chunking of a decode gives the same samples" * doctest::skip(no_device())) {
  TinyDecoder tiny;
  TensorFile golden(golden_path("codec.safetensors"));
  const View codes = golden.tensor_named("codes");
  const std::vector<float> whole = tiny.decode(codes, {12});
  for (const std::vector<int64_t>& chunks :
       std::vector<std::vector<int64_t>>{{1, 8, 3}, {5, 7}, {1, 1, 10}}) {
    CHECK(same_bits(tiny.decode(codes, chunks), whole));
  }
}
