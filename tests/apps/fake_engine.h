// An engine without a model for the tests of drama3-bench: its sound follows from text, settings and seed,
// and each of its faults breaks one promise.
#pragma once

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/engine/engine.h"

namespace drama3 {

enum class Fault {
  kNone,
  kDrifts,              // another sound at every call
  kOtherSound,          // a sound of its own, the same at every call
  kNeverEnds,           // goes on to the cap
  kIgnoresCap,          // one frame beyond the cap
  kIgnoresItsEnd,       // capped requests end by themselves
  kRefuses,             // an Error instead of every reply
  kSilent,              // zeros
  kLoud,                // beyond full scale
  kBriefest,            // one frame whatever the text
  kEndless,             // twenty times as long as the text
  kImpossibleTimes,     // stages longer than the whole
  kLeaks,               // keeps 3 MiB of every request
  kLosesBetweenGroups,  // the first sample of every later group is wrong
  kCountsWrong,         // the result tells fewer samples than the events brought
  kRepeatsEvents,       // every event twice
  kFirstOfTwo,          // a first event of two frames
  kGroupsOfAll,         // everything after the first event at once
  kFollowsPolicy,       // the sound depends on the policy
  kIgnoresSink,         // the sink's false changes nothing
  kIgnoresStop,         // a stop request changes nothing
  kDropsWhenSlow,       // leaves out what comes after a slow reader's turn
  kSwallowsErrors,      // an error of the reader ends the reply as finished
  kStaleAfterCancel,    // the request after a cancelled one has another sound
  kStaleAfterError,     // the request after an error has another sound
};

// 10 samples a frame, 100 a second; a "|" in the text begins another piece.
class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(Fault fault = Fault::kNone, std::string device = "cpu") : fault_(fault) {
    info_.model = "fake";
    info_.device = std::move(device);
    info_.device_name = "no device";
    info_.threads = 1;
    info_.sample_rate = 100;
    info_.samples_per_frame = 10;
  }

  const EngineInfo& info() const override { return info_; }
  SamplingSettings default_sampling() const override { return {}; }
  std::string checkpoint_hash() const override { return checkpoint_; }
  void set_checkpoint(const std::string& hash) { checkpoint_ = hash; }

  SpeechResult speak(const SpeechRequest& request, const SpeechSink& sink) override {
    ++calls_;
    if (fault_ == Fault::kRefuses) fail("fake: expected luck, got none");
    if (fault_ == Fault::kLeaks) leaked_.emplace_back(3 << 20, 'x');
    Turn turn{.request = request, .sink = sink, .stale = stale_};
    stale_ = false;
    try {
      for (size_t begin = 0; begin <= request.text.size() && turn.result.finish == Finish::kStop;) {
        const size_t end = std::min(request.text.find('|', begin), request.text.size());
        speak_piece(turn, request.text.substr(begin, end - begin));
        begin = end + 1;
      }
    } catch (const Error&) {
      if (fault_ == Fault::kStaleAfterError) stale_ = true;
      if (fault_ != Fault::kSwallowsErrors) throw;
    }
    if (fault_ == Fault::kStaleAfterCancel && turn.result.finish == Finish::kCancelled) stale_ = true;
    return finished(turn);
  }

 private:
  struct Turn {
    const SpeechRequest& request;
    const SpeechSink& sink;
    bool stale = false;
    bool drop = false;
    SpeechResult result = {};
    size_t piece = 0;
  };

  SpeechResult finished(Turn& turn) const {
    SpeechResult& result = turn.result;
    result.samples = result.frames * info_.samples_per_frame;
    if (fault_ == Fault::kCountsWrong) --result.samples;
    result.compute_seconds = 0.001 * static_cast<double>(result.frames);
    result.first_audio_seconds = 0.001;
    result.stages = {.prompt = 1e-4, .backbone = 1e-4, .tower = 1e-4, .sampler = 1e-4, .codec = 1e-4};
    if (fault_ == Fault::kImpossibleTimes) result.stages.codec = 100.0;
    return std::move(result);
  }

  int64_t frames_of(const std::string& text) const {
    if (fault_ == Fault::kBriefest) return 1;
    const auto frames = static_cast<int64_t>(text.size());  // 10 characters a second
    return fault_ == Fault::kEndless ? 20 * frames : frames;
  }

  void speak_piece(Turn& turn, const std::string& text) {
    const int64_t cap = turn.request.max_frames == 0 ? 1000 : turn.request.max_frames;
    int64_t end = turn.result.frames + frames_of(text);
    if (fault_ == Fault::kNeverEnds) end = cap;
    if (end >= cap && fault_ != Fault::kIgnoresItsEnd) {
      end = fault_ == Fault::kIgnoresCap ? cap + 1 : cap;
      turn.result.finish = Finish::kLength;
    }
    int64_t group = turn.request.chunks.first + (fault_ == Fault::kFirstOfTwo ? 1 : 0);
    while (turn.result.frames < end) {
      if (turn.request.stop.stop_requested() && fault_ != Fault::kIgnoresStop) {
        turn.result.finish = Finish::kCancelled;
        return;
      }
      const int64_t frames = std::min(group, end - turn.result.frames);
      group = fault_ == Fault::kGroupsOfAll ? end : turn.request.chunks.next;
      if (!send(turn, frames)) return;
    }
    ++turn.piece;
  }

  // One event; false when the sink cancels.
  bool send(Turn& turn, int64_t frames) {
    std::vector<float> samples;
    for (int64_t i = 0; i < frames * info_.samples_per_frame; ++i) {
      samples.push_back(sample(turn, turn.result.frames * info_.samples_per_frame + i));
    }
    if (fault_ == Fault::kLosesBetweenGroups && turn.result.frames > 0) samples[0] = 0.123f;
    turn.result.frames += frames;
    if (!turn.sink || turn.drop) return true;
    const auto before = std::chrono::steady_clock::now();
    const SpeechEvent event{
        .samples = samples, .frames = turn.result.frames, .piece = turn.piece, .pieces = 1};
    bool more = turn.sink(event);
    if (fault_ == Fault::kRepeatsEvents) more = turn.sink(event) && more;
    const auto taken = std::chrono::steady_clock::now() - before;
    turn.drop = fault_ == Fault::kDropsWhenSlow && taken > std::chrono::microseconds(500);
    if (more || fault_ == Fault::kIgnoresSink) return true;
    turn.result.finish = Finish::kCancelled;
    return false;
  }

  float sample(const Turn& turn, int64_t at) const {
    if (fault_ == Fault::kSilent) return 0.0f;
    uint64_t mixed =
        turn.request.seed * 1000003u + static_cast<uint64_t>(at) * 7919u + turn.request.text.size();
    if (fault_ == Fault::kDrifts) mixed += static_cast<uint64_t>(calls_);
    if (fault_ == Fault::kOtherSound || turn.stale) mixed += 1;
    if (fault_ == Fault::kFollowsPolicy) mixed += static_cast<uint64_t>(turn.request.chunks.first);
    const float level = static_cast<float>(mixed % 1009u) / 1009.0f - 0.5f;
    return fault_ == Fault::kLoud ? level * 100.0f : level;
  }

  Fault fault_;
  EngineInfo info_;
  std::string checkpoint_ = std::string(64, 'c');
  int64_t calls_ = 0;
  bool stale_ = false;
  std::vector<std::string> leaked_;
};

}  // namespace drama3
