// Draws on CUDA against the definition.
#include "kernels/ref/ref_ops.h"
#include "lib/store/tensor_file.h"
#include "tests/cuda/rig.h"

using namespace drama3;
using namespace drama3::cuda_test;

namespace {

// The codes drawn for frames 0, 1, ... and the failure flag.
std::vector<int32_t> draws(Ops& ops, const View& logits, const Sampling& sampling, int frames) {
  const int64_t n = logits.elements();
  const Buffer row = ops.allocate(DType::kF32, Shape{1, n});
  const Buffer code = ops.allocate(DType::kI32, Shape{1, 1});
  const int64_t bytes = static_cast<int64_t>(sizeof(Sampling));
  const Buffer settings = ops.allocate(DType::kU8, Shape{bytes});
  const Buffer frame = ops.allocate(DType::kI32, Shape{1});
  const Buffer failure = ops.allocate(DType::kI32, Shape{1});
  ops.upload(row.view, View(logits.data, DType::kF32, Shape{1, n}));
  ops.upload(settings.view, View(const_cast<Sampling*>(&sampling), DType::kU8, Shape{bytes}));
  std::vector<int32_t> codes;
  const auto read = [&](const Buffer& from) {
    int32_t value = 0;
    ops.download(View(&value, DType::kI32, from.view.shape), from.view);
    return value;
  };
  for (int f = 0; f < frames; ++f) {
    ops.pick(code.view, row.view, {settings.view, frame.view, failure.view}, 3);
    ops.advance(frame.view, 1);
    codes.push_back(read(code));
  }
  codes.push_back(read(failure));
  return codes;
}

}  // namespace

TEST_CASE("cuda: draws equal the definition's for every golden setting" * doctest::skip(no_device())) {
  const auto cuda = make_cuda_ops({});
  RefOps ref;
  TensorFile golden(golden_path("sampler.safetensors"));
  for (int i = 0; i < 7; ++i) {
    const View logits = golden.tensor_named(join(i, ".logits"));
    for (const Sampling& sampling : {Sampling{.temperature = 1.0f, .top_p = 0.9f, .top_k = 0, .seed = 5},
                                     Sampling{.temperature = 0.7f, .top_p = 0.8f, .top_k = 30, .seed = 6},
                                     Sampling{.temperature = 1.5f, .top_p = 1.0f, .top_k = 0, .seed = 7},
                                     Sampling{.temperature = 0.0f}}) {
      CAPTURE(i);
      CHECK(draws(*cuda, logits, sampling, 40) == draws(ref, logits, sampling, 40));
    }
  }
}

TEST_CASE("cuda: draws equal the definition's for every size and shape of distribution" *
          doctest::skip(no_device())) {
  const auto cuda = make_cuda_ops({});
  RefOps ref;
  const auto entry = [](int64_t i) { return static_cast<float>((i * 7919 + 13) % 1009) / 1009.0f; };
  for (const int64_t n : {1, 2, 31, 257, 1024, 1025, 4097, 5121, 8192}) {
    for (const float spread :
         {0.0f, 0.01f, 4.0f, 30.0f, 1000.0f}) {  // flat, crowded bins, usual, sharp, one alone
      if (n > 4097 && spread == 0.0f) continue;  // the definition's F32 sum of so many equal terms drifts
      std::vector<float> logits(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i) logits[static_cast<size_t>(i)] = spread * (entry(i) - 0.5f);
      const View view(logits.data(), DType::kF32, Shape{1, n});
      for (const Sampling& sampling :
           {Sampling{.temperature = 1.0f, .top_p = 0.9f, .top_k = 0, .seed = 5},
            Sampling{.temperature = 0.5f, .top_p = 0.7f, .top_k = 40, .seed = 6},
            Sampling{.temperature = 1e-30f, .top_p = 1.0f, .top_k = 0, .seed = 7}}) {
        CAPTURE(n);
        CAPTURE(spread);
        CAPTURE(sampling.seed);
        CHECK(draws(*cuda, view, sampling, 3) == draws(ref, view, sampling, 3));
      }
    }
  }
}

TEST_CASE("cuda: ties go to the lower index, and a logit that is no number is a failure" *
          doctest::skip(no_device())) {
  const auto cuda = make_cuda_ops({});
  RefOps ref;
  std::vector<float> logits(4097, 0.25f);
  const View view(logits.data(), DType::kF32, Shape{1, 4097});
  const Sampling sampling{.temperature = 1.0f, .top_p = 1.0f, .top_k = 50, .seed = 1};
  const std::vector<int32_t> codes = draws(*cuda, view, sampling, 30);
  CHECK(codes == draws(ref, view, sampling, 30));
  CHECK(*std::max_element(codes.begin(), codes.end()) < 50);
  std::fill(logits.begin(), logits.end(), 0.0f);
  logits[0] = -0.0f;
  CHECK(draws(*cuda, view, {.temperature = 0.0f}, 2) == std::vector<int32_t>{0, 0, 0});
  logits[17] = NAN;
  CHECK(draws(*cuda, view, sampling, 3) == std::vector<int32_t>{0, 0, 0, 1 + 3});
}
