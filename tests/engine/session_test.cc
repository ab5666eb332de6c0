// The request loop over fake stages whose output depends on all history: grouping, cap, end, cancellation,
// errors.
#include "lib/engine/session.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "lib/base/error.h"

using namespace drama3;

namespace {

constexpr int64_t kCodebooks = 3;
constexpr int64_t kSamples = 4;

// Codes mix everything seen so far, so a dropped, doubled or reordered call shows in all later frames.
class FakeGenerator : public FrameGenerator {
 public:
  int64_t length = 10;         // frames until the end of speech
  int64_t failing_frame = -1;  // -2: the prompt
  int64_t calls = 0;
  std::function<void(int64_t calls)> drawn;  // told of every frame; may be empty

  int64_t codebooks() const override { return kCodebooks; }
  void start(const PromptRows& prompt, const Sampling& sampling, int64_t) override {
    history_ = 17 + sampling.seed;
    if (failing_frame == -2) fail("made to fail");
    for (int32_t id : prompt.ids) mix(static_cast<uint64_t>(id));
    frame_ = 0;
    calls = 0;
  }
  bool next(std::span<int32_t> codes) override {
    ++calls;
    if (frame_ == failing_frame) fail("made to fail");
    if (frame_++ == length) return false;
    for (int32_t& code : codes) {
      mix(static_cast<uint64_t>(frame_));
      code = static_cast<int32_t>(history_ % 97);
    }
    if (drawn) drawn(calls);
    return true;
  }

 private:
  void mix(uint64_t value) { history_ = history_ * 6364136223846793005ull + value + 1442695040888963407ull; }
  uint64_t history_ = 0;
  int64_t frame_ = 0;
};

class FakeVocoder : public Vocoder {
 public:
  bool ahead = false;  // begin() leaves the work to finish(), as a device's would be found done then
  int64_t begun = 0;   // frames since start()
  int64_t failing_frame = -1;
  int64_t samples_per_frame() const override { return kSamples; }
  int64_t max_frames_per_call() const override { return 4; }
  bool runs_ahead() const override { return ahead; }
  void start() override {
    level_ = 0.0f;
    begun = 0;
    codes_.clear();
  }
  void begin(std::span<const int32_t> codes) override {
    REQUIRE(codes_.empty());  // one call at a time
    codes_.assign(codes.begin(), codes.end());
    const auto frames = static_cast<int64_t>(codes.size()) / kCodebooks;
    if (failing_frame >= begun && failing_frame < begun + frames) fail("made to fail");
    begun += frames;
  }
  void finish(std::span<float> pcm) override {
    REQUIRE(pcm.size() == codes_.size() / kCodebooks * kSamples);
    for (size_t frame = 0; frame < codes_.size() / kCodebooks; ++frame) {
      for (size_t k = 0; k < kCodebooks; ++k)
        level_ = level_ * 0.5f + static_cast<float>(codes_[frame * kCodebooks + k]);
      for (size_t i = 0; i < kSamples; ++i) pcm[frame * kSamples + i] = level_ + static_cast<float>(i);
    }
    codes_.clear();
  }

 private:
  float level_ = 0.0f;
  std::vector<int32_t> codes_;  // of the call under way
};

struct Rig {
  FakeGenerator generator;
  FakeVocoder vocoder;
  Session session{generator, vocoder, 64};
  std::vector<float> pcm = std::vector<float>(64 * kSamples);
  std::vector<int64_t> events;
  std::vector<int64_t> draws;  // calls of the generator at each event

  SessionResult run(SessionRequest request) {
    events.clear();
    draws.clear();
    request.prompt.ids = {1, 2, 3};
    return session.run(request, pcm, [&](int64_t frames) {
      events.push_back(frames);
      draws.push_back(generator.calls);
      return true;
    });
  }
};

}  // namespace

TEST_CASE("the first frame comes alone, then groups, then the rest; the end of speech gives no frame") {
  Rig rig;
  const SessionResult result = rig.run({.max_frames = 64, .chunks = {.first = 1, .next = 4}});
  CHECK(result.frames == 10);
  CHECK(result.finish == Finish::kStop);
  CHECK(rig.events == std::vector<int64_t>{1, 5, 9, 10});
}

TEST_CASE("the samples do not depend on the chunk policy") {
  Rig rig;
  rig.run({.max_frames = 64, .chunks = {.first = 1, .next = 4}});
  const std::vector<float> expected = rig.pcm;
  for (const ChunkPolicy policy :
       {ChunkPolicy{1, 1}, ChunkPolicy{3, 2}, ChunkPolicy{64, 64}, ChunkPolicy{10, 7}}) {
    rig.pcm.assign(rig.pcm.size(), 0.0f);
    rig.run({.max_frames = 64, .chunks = policy});
    CHECK(rig.pcm == expected);
  }
}

TEST_CASE(
    "a vocoder that runs ahead decodes a group while the next frame is drawn; the samples are the same") {
  Rig rig;
  const SessionRequest request{.max_frames = 64, .chunks = {.first = 1, .next = 4}};
  rig.run(request);
  const std::vector<float> expected = rig.pcm;
  CHECK(rig.draws == std::vector<int64_t>{1, 5, 9, 11});
  rig.vocoder.ahead = true;
  rig.pcm.assign(rig.pcm.size(), 0.0f);
  CHECK(rig.run(request).frames == 10);
  CHECK(rig.pcm == expected);
  CHECK(rig.events == std::vector<int64_t>{1, 5, 9, 10});
  CHECK(rig.draws == std::vector<int64_t>{1, 6, 10, 11});  // the first group is waited for
  for (const ChunkPolicy policy : {ChunkPolicy{1, 1}, ChunkPolicy{3, 7}, ChunkPolicy{64, 64}}) {
    rig.pcm.assign(rig.pcm.size(), 0.0f);
    CHECK(rig.run({.max_frames = 64, .chunks = policy}).frames == 10);
    CHECK(rig.pcm == expected);
  }
  CHECK(rig.run({.max_frames = 5, .chunks = {.first = 1, .next = 4}}).finish == Finish::kLength);
  CHECK(rig.events == std::vector<int64_t>{1, 5});
}

TEST_CASE("cancellation and errors while a group is decoded leave it out, and the next request is whole") {
  Rig rig;
  rig.run({.max_frames = 64});
  const std::vector<float> expected = rig.pcm;
  rig.vocoder.ahead = true;
  std::stop_source source;
  rig.generator.drawn = [&](int64_t calls) {
    if (calls == 5) source.request_stop();
  };
  const SessionResult result =
      rig.run({.max_frames = 64, .chunks = {.first = 1, .next = 4}, .stop = source.get_token()});
  CHECK(result.finish == Finish::kCancelled);
  CHECK(result.frames == 1);
  CHECK(rig.vocoder.begun == 5);
  rig.generator.drawn = {};
  rig.generator.failing_frame = 5;
  CHECK_THROWS_AS(rig.run({.max_frames = 64, .chunks = {.first = 1, .next = 4}}), Error);
  CHECK(rig.events.back() == 1);
  CHECK(rig.vocoder.begun == 5);
  rig.generator.failing_frame = -1;
  rig.run({.max_frames = 64});
  CHECK(rig.pcm == expected);
}

TEST_CASE("a cap cuts at exactly its frames and says length; a cap met by the natural end too") {
  Rig rig;
  const SessionResult cut = rig.run({.max_frames = 7});
  CHECK(cut.frames == 7);
  CHECK(cut.finish == Finish::kLength);
  CHECK(rig.generator.calls == 7);
  CHECK(rig.events.back() == 7);
  CHECK(rig.run({.max_frames = 11}).finish == Finish::kStop);
}

TEST_CASE("no speech at all is no frame and no event") {
  Rig rig;
  rig.generator.length = 0;
  CHECK(rig.run({.max_frames = 5}).frames == 0);
  CHECK(rig.events.empty());
}

TEST_CASE("a stop request ends within a frame and the next request gives its usual samples") {
  Rig rig;
  rig.run({.max_frames = 64});
  const std::vector<float> expected = rig.pcm;
  std::stop_source source;
  SessionRequest request{.max_frames = 64, .chunks = {.first = 2, .next = 2}, .stop = source.get_token()};
  request.prompt.ids = {1, 2, 3};
  const SessionResult result = rig.session.run(request, rig.pcm, [&](int64_t frames) {
    if (frames == 4) source.request_stop();
    return true;
  });
  CHECK(result.finish == Finish::kCancelled);
  CHECK(rig.generator.calls == 4);
  rig.run({.max_frames = 64});
  CHECK(rig.pcm == expected);
}

TEST_CASE("a sink that returns false cancels") {
  Rig rig;
  SessionRequest request{.max_frames = 64};
  request.prompt.ids = {1};
  const SessionResult result = rig.session.run(request, rig.pcm, [](int64_t) { return false; });
  CHECK(result.finish == Finish::kCancelled);
  CHECK(rig.generator.calls == 1);
}

TEST_CASE("an error names its stage and frames") {
  Rig rig;
  rig.generator.failing_frame = -2;
  CHECK_THROWS_WITH_AS(rig.run({.max_frames = 64}), "prompt: made to fail", Error);
  rig.generator.failing_frame = -1;
  rig.vocoder.failing_frame = 6;
  CHECK_THROWS_WITH_AS(rig.run({.max_frames = 64, .chunks = {.first = 1, .next = 4}}),
                       "codec, frames 5 to 8: made to fail", Error);
  CHECK(rig.events.back() == 5);
}

TEST_CASE("an error after the first event is thrown, and the next request gives its usual samples") {
  Rig rig;
  rig.run({.max_frames = 64});
  const std::vector<float> expected = rig.pcm;
  rig.generator.failing_frame = 5;
  CHECK_THROWS_WITH_AS(rig.run({.max_frames = 64, .chunks = {.first = 1, .next = 1}}),
                       "frame 5: made to fail", Error);
  CHECK(rig.events.back() == 5);
  rig.generator.failing_frame = -1;
  rig.run({.max_frames = 64});
  CHECK(rig.pcm == expected);
}
