// A whole model drawing frames: golden codes, the same codes on every thread count and instruction set, no
// allocation.
#include "lib/engine/model_generator.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/targets.h"
#include "kernels/ref/ref_ops.h"
#include "lib/base/error.h"
#include "lib/engine/codec_vocoder.h"
#include "lib/engine/model.h"
#include "tests/allocation_count.h"
#include "tests/model/golden_tensors.h"

using namespace drama3;

namespace {

const std::string kTiny = DRAMA3_TEST_DATA "/golden/tiny";

struct Rig {
  std::unique_ptr<Ops> ops;
  Model model;
  ModelGenerator generator;
  CodecVocoder vocoder;
  Session session;
  std::vector<float> pcm;

  explicit Rig(std::unique_ptr<Ops> backend)
      : ops(std::move(backend)),
        model(*ops, kTiny, {}),
        generator(*ops, generator_parts(model), 512),
        vocoder(*ops, model.codec, {.frames_per_call = 8, .frames = 256}),
        session(generator, vocoder, 256),
        pcm(static_cast<size_t>(256 * vocoder.samples_per_frame())) {}

  PromptRows prompt(const std::string& text) const { return {.ids = model.tokenizer.encode(text)}; }
  std::vector<int32_t> draw(const PromptRows& rows, const Sampling& sampling, int64_t frames) {
    std::vector<int32_t> codes(static_cast<size_t>(frames * 10));
    generator.start(rows, sampling, frames);
    for (int64_t f = 0; f < frames; ++f) {
      if (!generator.next(std::span(codes).subspan(static_cast<size_t>(f * 10), 10)))
        codes[static_cast<size_t>(f * 10)] = -1;
    }
    return codes;
  }
};

const std::string kPrompt =
    "<|im_start|>system\nconvert the provided text to "
    "speech<|im_end|>\n<|im_start|>user\n<|speaker:0|>Hello, "
    "world!<|im_end|>\n<|im_start|>assistant\n<|voice|>";

}  // namespace

TEST_CASE("greedy codes of the first golden text are the reference's, drawn freely") {
  const GoldenTensors golden("greedy.safetensors");
  const View want = golden["0.codes"];
  for (const bool fast : {false, true}) {
    Rig rig(fast ? make_cpu_ops(2) : std::make_unique<RefOps>());
    const std::vector<int32_t> got = rig.draw(rig.prompt(kPrompt), {.temperature = 0.0f}, want.cols());
    for (int64_t f = 0; f < want.cols(); ++f) {
      for (int64_t k = 0; k < want.rows(); ++k) {
        CAPTURE(f);
        CAPTURE(k);
        CHECK(got[static_cast<size_t>(f * 10 + k)] == want.row<int32_t>(k)[f]);
      }
    }
  }
}

TEST_CASE("codes and samples are the same bytes for every thread count and instruction set") {
  const Sampling sampling{.temperature = 0.9f, .top_p = 0.95f, .top_k = 0, .seed = 11};
  std::vector<int32_t> codes;
  std::vector<float> samples;
  for (const std::string& set : instruction_sets()) {
    for (const int threads : {1, 2}) {
      select_instruction_set(set);
      Rig rig(make_cpu_ops(threads));
      CAPTURE(set);
      CAPTURE(threads);
      const std::vector<int32_t> drawn = rig.draw(rig.prompt(kPrompt), sampling, 12);
      SessionRequest request{.prompt = rig.prompt(kPrompt), .sampling = sampling, .max_frames = 12};
      rig.session.run(request, rig.pcm, {});
      if (codes.empty()) {
        codes = drawn;
        samples = rig.pcm;
      }
      CHECK(drawn == codes);
      CHECK(rig.pcm == samples);
    }
  }
  select_instruction_set("");
}

TEST_CASE("a hundred frames and their decoding allocate nothing") {
  for (const bool fast : {false, true}) {
    Rig rig(fast ? make_cpu_ops(2) : std::make_unique<RefOps>());
    const Sampling sampling{.temperature = 1.5f, .top_p = 1.0f, .top_k = 0, .seed = 3};
    SessionRequest request{
        .prompt = rig.prompt(kPrompt), .sampling = sampling, .max_frames = fast ? 100 : 20};
    rig.session.run(request, rig.pcm, {});
    int64_t before = 0;
    const FramesSink sink = [&](int64_t frames) {
      if (frames == 1) before = allocation_count();
      return true;
    };
    const SessionResult result = rig.session.run(request, rig.pcm, sink);
    CAPTURE(fast);
    CHECK(result.frames > 1);
    CHECK(allocation_count() == before);
  }
}

TEST_CASE("a prompt that does not fit is refused before it is computed, with both numbers") {
  Rig rig(make_cpu_ops(1));
  PromptRows rows{.ids = std::vector<int32_t>(500, 5)};
  try {
    rig.generator.start(rows, {}, 100);
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("500 + 100") != std::string::npos);
    CHECK(std::string(error.what()).find("512") != std::string::npos);
  }
}
