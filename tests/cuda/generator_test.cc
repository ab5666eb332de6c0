// Whole frames on CUDA: the draws of a request, recorded or not, merged or not, and their memory.
#include "lib/engine/codec_vocoder.h"
#include "lib/store/json_reader.h"
#include "lib/store/tensor_file.h"
#include "tests/cuda/rig.h"

using namespace drama3;
using namespace drama3::cuda_test;

namespace {

// A prompt row or a frame takes most of a second on fibers.
#ifdef DRAMA3_EMULATED
constexpr int kFrames = 3;
constexpr int kPromptRows = 3;
const std::vector<float> kTemperatures = {1.0f};
const std::vector<int64_t> kGroups = {1};
#else
constexpr int kFrames = 12;
constexpr int kPromptRows = 40;
const std::vector<float> kTemperatures = {1.0f, 0.0f};
const std::vector<int64_t> kGroups = {1, 3, 4, 12};
#endif

PromptRows short_prompt() {
  PromptRows prompt;
  for (int32_t i = 0; i < kPromptRows; ++i) prompt.ids.push_back(i * 17 % 700);
  return prompt;
}

// The codes of the first frames that a prompt gives.
std::vector<int32_t> frames_of(const CudaOptions& options, const Sampling& sampling,
                               int64_t* grown = nullptr) {
  Tiny tiny(options);
  ModelGenerator generator(*tiny.ops, generator_parts(tiny.model), 128);
  std::vector<int32_t> all;
  for (int request = 0; request < 2; ++request) {  // the second one replays from its first frame on
    all.clear();
    generator.start(short_prompt(), sampling, kFrames);
    const int64_t before = cuda_counters(*tiny.ops).allocations;
    for (int f = 0; f < kFrames; ++f) {
      std::vector<int32_t> codes(10);
      generator.next(codes);
      all.insert(all.end(), codes.begin(), codes.end());
    }
    if (grown != nullptr) *grown = cuda_counters(*tiny.ops).allocations - before;
  }
  return all;
}

// The samples of one request, its codec on one of the two queues, in groups of `group` frames.
std::vector<float> speech_of(Tiny& tiny, ModelGenerator& generator, Ops& codec_queue, int64_t group) {
  CodecVocoder vocoder(codec_queue, tiny.model.codec, {.frames_per_call = 8, .frames = kFrames});
  Session session(generator, vocoder, kFrames);
  std::vector<float> pcm(static_cast<size_t>(kFrames * vocoder.samples_per_frame()));
  session.run({.prompt = short_prompt(),
               .sampling = {.seed = 7},
               .max_frames = kFrames,
               .chunks = {.first = 1, .next = group}},
              pcm, {});
  return pcm;
}

}  // namespace

// On fibers, where launches run at once, only a device tells whether an order between the queues is missing.
TEST_CASE("cuda: a codec beside the frames gives the samples of one that waits its turn" *
          doctest::skip(no_device())) {
  Tiny tiny;
  ModelGenerator generator(*tiny.ops, generator_parts(tiny.model), 128);
  const std::vector<float> expected = speech_of(tiny, generator, *tiny.ops, 4);
  for (const int64_t group : kGroups) {
    CHECK(same_bits(speech_of(tiny, generator, tiny.ops->beside(), group), expected));
  }
}

TEST_CASE("cuda: recorded and plain, merged and single steps draw the same codes, and allocate nothing" *
          doctest::skip(no_device())) {
  for (const float temperature : kTemperatures) {
    const Sampling sampling{.temperature = temperature, .top_p = 0.9f, .top_k = 0, .seed = 7};
    int64_t grown = -1;
    const std::vector<int32_t> codes = frames_of({}, sampling, &grown);
    CHECK(grown == 0);
    CHECK(frames_of({}, sampling) == codes);
    CHECK(frames_of({.graphs = false}, sampling) == codes);
    CHECK(frames_of({.graphs = false, .overlap = false, .fuse = false}, sampling) == codes);
  }
}
