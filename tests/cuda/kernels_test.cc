// The shortest run that launches every kernel of the backend, for tools that slow a device down a
// hundredfold.
#include <algorithm>

#include "lib/codec/decode.h"
#include "lib/store/codec_file.h"
#include "tests/cuda/rig.h"

using namespace drama3;
using namespace drama3::cuda_test;

namespace {

constexpr int kPromptRows = 5;
constexpr int kFrames = 3;  // one runs plainly, one records, one replays

// Codes of a short request on the tiny checkpoint.
std::vector<int32_t> request(const CudaOptions& options) {
  Tiny tiny(options);
  ModelGenerator generator(*tiny.ops, generator_parts(tiny.model), 32);
  PromptRows prompt;
  for (int32_t i = 0; i < kPromptRows; ++i) prompt.ids.push_back(i * 17 + 3);
  generator.start(prompt, {.temperature = 1.0f, .top_p = 0.9f, .top_k = 20, .seed = 11}, kFrames);
  std::vector<int32_t> all;
  for (int f = 0; f < kFrames; ++f) {
    std::vector<int32_t> codes(10);
    generator.next(codes);
    all.insert(all.end(), codes.begin(), codes.end());
  }
  return all;
}

// Two frames of sound, one a call.
std::vector<float> sound() {
  const auto ops = make_cuda_ops({});
  CodecFile file(golden_path("tiny/codec.pth"));
  const codec::Weights weights = codec::load_weights(
      *ops, file, {.window_size = 8, .head_dim = 32, .encoder_window_size = 16}, codec::Parts::kDecoder);
  codec::Decoder decoder(*ops, weights, {.frames_per_call = 1, .frames = 2});
  const Buffer codes = ops->allocate(DType::kI32, Shape{1, 10});
  const Buffer pcm = ops->allocate(DType::kF16, Shape{weights.samples_per_frame});
  std::vector<float> all;
  for (int f = 0; f < 2; ++f) {
    decoder.decode(pcm.view, codes.view);
    const std::vector<float> samples = values_of(*ops, pcm.view);
    all.insert(all.end(), samples.begin(), samples.end());
  }
  return all;
}

// What no request calls: an encoder's look-up, the history of frames, and a norm over a width that eight does
// not divide.
void check_other_ops() {
  const auto ops = make_cuda_ops({});
  const auto on_device = [&](DType type, const Shape& shape, const std::vector<float>& values) {
    const Buffer buffer = ops->allocate(type, shape);
    ops->upload(buffer.view, View(const_cast<float*>(values.data()), DType::kF32, shape));
    return buffer;
  };
  const auto codes_of = [&](const View& view) {
    std::vector<int32_t> codes(static_cast<size_t>(view.elements()), -1);
    ops->download(View(codes.data(), DType::kI32, view.shape), view);
    return codes;
  };
  const Buffer table = on_device(DType::kF16, Shape{5, 2}, {3, 0, 0, 2, 0, 5, -1, -1, 0, 0});
  const Buffer rows = on_device(DType::kF16, Shape{5, 2}, {1, 0.9f, 0.1f, 9, -2, -3, 0, 0, -1, 0.9f});
  const Buffer codes = ops->allocate(DType::kI32, Shape{5, 1});
  ops->nearest(codes.view, rows.view, table.view);
  CHECK(codes_of(codes.view) == std::vector<int32_t>{0, 1, 3, 0, 1});

  const Buffer history = ops->allocate(DType::kI32, Shape{2, 5}),
               frame = ops->allocate(DType::kI32, Shape{1});
  ops->advance(frame.view, 3);
  View row = codes.view;
  row.shape = Shape{1, 5};
  row.row_stride = 5;
  ops->record_codes(history.view, row, frame.view);
  CHECK(codes_of(history.view) == std::vector<int32_t>{0, 0, 0, 0, 0, 0, 1, 3, 0, 1});

  const Buffer gain = on_device(DType::kF32, Shape{1, 3}, {1, 2, -1});
  const Buffer x = on_device(DType::kF16, Shape{1, 3}, {3, 4, 0});  // mean square 25 / 3
  ops->rms_norm(x.view, x.view, {.weight = gain.view, .eps = 0.0f});
  const std::vector<float> normed = values_of(*ops, x.view);
  CHECK(normed[0] == doctest::Approx(3.0 / std::sqrt(25.0 / 3.0)).epsilon(1e-3));
  CHECK(normed[1] == doctest::Approx(8.0 / std::sqrt(25.0 / 3.0)).epsilon(1e-3));
  CHECK(normed[2] == 0.0f);
}

}  // namespace

TEST_CASE("cuda: a short request and two frames of sound launch every kernel, in merged and in single steps" *
          doctest::skip(no_device())) {
  const std::vector<int32_t> merged = request({});
  CHECK(request({.overlap = false, .fuse = false}) == merged);
  const std::vector<float> samples = sound();
  CHECK(std::all_of(samples.begin(), samples.end(), [](float s) { return std::abs(s) <= 1.0f; }));
  CHECK(std::any_of(samples.begin(), samples.end(), [](float s) { return s != 0.0f; }));
  check_other_ops();
}
