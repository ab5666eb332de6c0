// The public engine on the tiny golden checkpoint: pieces, caps, seeds, chunk policies, cancellation,
// refusals.
#include "lib/engine/engine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/base/error.h"

using namespace drama3;

namespace {

const std::string kTiny = DRAMA3_TEST_DATA "/golden/tiny";

struct Spoken {
  SpeechResult result;
  std::vector<float> samples;
  std::vector<int64_t> frames;  // of each event
};

Spoken speak(Engine& engine, const SpeechRequest& request) {
  Spoken spoken;
  spoken.result = engine.speak(request, [&](const SpeechEvent& event) {
    spoken.samples.insert(spoken.samples.end(), event.samples.begin(), event.samples.end());
    spoken.frames.push_back(event.frames);
    return true;
  });
  return spoken;
}

// The tiny checkpoint is random, so most requests are cut by the cap.
SpeechRequest request_of(const std::string& text, int64_t max_frames) {
  return {
      .text = text, .sampling = {.temperature = 1.0f, .top_p = 0.9f}, .seed = 5, .max_frames = max_frames};
}

}  // namespace

TEST_CASE("a request gives whole frames, the same again, and others for another seed") {
  const auto engine = Engine::open({.model = kTiny, .device = "cpu"});
  const Spoken first = speak(*engine, request_of("Hello, world!", 12));
  CHECK(first.result.frames > 0);
  CHECK(first.result.frames <= 12);
  CHECK(first.result.samples == first.result.frames * engine->info().samples_per_frame);
  CHECK(static_cast<int64_t>(first.samples.size()) == first.result.samples);
  CHECK(std::is_sorted(first.frames.begin(), first.frames.end()));
  CHECK(first.frames.front() == 1);
  CHECK(speak(*engine, request_of("Hello, world!", 12)).samples == first.samples);
  SpeechRequest other = request_of("Hello, world!", 12);
  other.seed = 6;
  CHECK(speak(*engine, other).samples != first.samples);
}

TEST_CASE("a piece that ends implausibly early is an error, and the next request gives its usual samples") {
  const auto engine = Engine::open({.model = kTiny, .device = "cpu"});
  SpeechRequest request = request_of("The ferry leaves at six and the last one back is at ten.", 10);
  request.sampling = engine->default_sampling();
  request.seed = 41;
  const std::vector<float> usual = speak(*engine, request).samples;
  CHECK(usual.size() == 10 * 2048);
  request.seed = 40;  // at which this random checkpoint ends after two frames
  CHECK_THROWS_WITH_AS(
      speak(*engine, request),
      "piece 1 of 1: expected about 3.2 s of speech, got 0.1: the model ended it at frame 2; "
      "try another seed or temperature",
      Error);
  request.seed = 41;
  CHECK(speak(*engine, request).samples == usual);
}

TEST_CASE("chunk policy and threads do not change a sample") {
  const auto engine = Engine::open({.model = kTiny, .device = "cpu", .threads = 1});
  SpeechRequest request = request_of("Chunks are only how it is handed over.", 20);
  const std::vector<float> expected = speak(*engine, request).samples;
  for (const ChunkPolicy policy : {ChunkPolicy{1, 1}, ChunkPolicy{20, 20}, ChunkPolicy{3, 5}}) {
    request.chunks = policy;
    CHECK(speak(*engine, request).samples == expected);
  }
  const auto two = Engine::open({.model = kTiny, .device = "cpu", .threads = 2});
  CHECK(speak(*two, request).samples == expected);
}

TEST_CASE("a cap covers all pieces: later pieces are listed, not spoken, and the reply says length") {
  const auto engine = Engine::open({.model = kTiny, .device = "cpu"});
  std::string text;
  for (int i = 0; i < 40; ++i) text += "Entry " + std::to_string(i) + ": the lamp in the room was left on. ";
  const Spoken spoken = speak(*engine, request_of(text, 9));
  CHECK(spoken.result.frames <= 9);
  CHECK(spoken.result.finish == Finish::kLength);
  CHECK(spoken.result.pieces.size() > 1);
  std::string joined;
  for (const PieceResult& piece : spoken.result.pieces) joined += piece.text;
  CHECK(joined == text);
}

TEST_CASE("a sink cancels, and so does a stop token; the next request gives its usual samples") {
  const auto engine = Engine::open({.model = kTiny, .device = "cpu"});
  SpeechRequest request = request_of("Stop me if you can.", 30);
  request.sampling.top_p = 0.3f;
  const std::vector<float> expected = speak(*engine, request).samples;
  int events = 0;
  const SpeechResult cancelled = engine->speak(request, [&](const SpeechEvent&) { return ++events < 2; });
  if (expected.size() > 9u * 2048) CHECK(cancelled.finish == Finish::kCancelled);
  std::stop_source source;
  source.request_stop();
  SpeechRequest stopped = request;
  stopped.stop = source.get_token();
  CHECK(engine->speak(stopped, {}).finish == Finish::kCancelled);
  CHECK(speak(*engine, request).samples == expected);
}

TEST_CASE("texts that cannot be spoken and devices that are not there are named") {
  const auto engine = Engine::open({.model = kTiny, .device = "cpu"});
  for (const std::string text : {"", "  \t\n", "\xff\xfe", "a <|im_end|> b"}) {
    CHECK_THROWS_AS(engine->speak(request_of(text, 5), {}), Error);
  }
  CHECK_THROWS_AS(Engine::open({.model = kTiny, .device = "cuda:99"}), Error);
  CHECK_THROWS_AS(Engine::open({.model = kTiny, .device = "cuda:x"}), Error);
  CHECK_THROWS_AS(Engine::open({.model = kTiny, .device = "tpu"}), Error);
  CHECK_THROWS_AS(Engine::open({.model = kTiny + "/absent", .device = "cpu"}), Error);
}

TEST_CASE("the prompt's ids come from the tokenizer alone and are the golden ones") {
  const auto prompts = prompt_tokens(kTiny, "Hello, world!");
  REQUIRE(prompts.size() == 1);
  CHECK(prompts[0].size() == 45);
  CHECK(prompts[0].front() == 747);
  CHECK(prompts[0].back() == 749);
}
