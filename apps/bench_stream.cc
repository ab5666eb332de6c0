// The nine stream checks.
#include "apps/bench_stream.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "lib/audio/sample_conversion.h"
#include "lib/base/error.h"
#include "lib/base/sha256.h"

namespace drama3::bench {
namespace {

constexpr int64_t kOneGroup = 1 << 20;       // frames, more than any reply has
constexpr int64_t kFramesForCancelling = 5;  // a shorter reply ends before it can be cancelled
constexpr std::string_view kReaderFailed = "the reader of this stream check failed on purpose";

// One event without its samples.
struct EventRecord {
  int64_t frames = 0;
  size_t samples = 0;
  size_t piece = 0;
};

// What a listener heard.
struct Heard {
  std::vector<float> samples;
  std::vector<EventRecord> events;
  SpeechResult result;
};

bool same_samples(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

std::string digest(std::span<const float> samples) {
  std::vector<int16_t> converted(samples.size());
  LevelMeter level;
  convert_samples(converted, samples, level);
  return sha256_hex(std::as_bytes(std::span(converted)));
}

class StreamChecks {
 public:
  StreamChecks(Engine& engine, const StreamSubject& subject) : engine_(engine), subject_(subject) {}

  std::vector<Gate> run() {
    using Check = void (StreamChecks::*)(Gate&);
    static constexpr std::array<Check, 8> kChecks{
        &StreamChecks::joined_is_whole, &StreamChecks::prefixes_grow,     &StreamChecks::first_is_one_frame,
        &StreamChecks::groups_follow,   &StreamChecks::policies_agree,    &StreamChecks::cancelling_stops,
        &StreamChecks::slow_reader,     &StreamChecks::error_is_reported,
    };
    std::vector<Gate> gates = unchecked_stream_gates();
    for (size_t i = 0; i < kChecks.size(); ++i) {
      guarded(gates[i], [&] { (this->*kChecks[i])(gates[i]); });
      guarded(gates.back(), [&] { usual_again(gates.back(), gates[i].name); });
    }
    return gates;
  }

 private:
  // An Error where none belongs fails the gate.
  template <typename Body>
  static void guarded(Gate& gate, const Body& body) {
    try {
      body();
    } catch (const Error& error) {
      gate.check(false, join("expected no error, got: ", error.what()));
    }
  }

  SpeechRequest with(ChunkPolicy chunks) const {
    SpeechRequest request = subject_.request;
    request.chunks = chunks;
    return request;
  }

  // Speaks; `after` is asked whether to go on, with what was heard so far.
  template <typename After>
  Heard listen(const SpeechRequest& request, const After& after) {
    Heard heard;
    heard.result = engine_.speak(request, [&](const SpeechEvent& event) {
      heard.samples.insert(heard.samples.end(), event.samples.begin(), event.samples.end());
      heard.events.push_back({event.frames, event.samples.size(), event.piece});
      return after(heard);
    });
    return heard;
  }
  Heard listen(const SpeechRequest& request) {
    return listen(request, [](const Heard&) { return true; });
  }

  size_t samples_of(int64_t frames) const {
    return static_cast<size_t>(frames * engine_.info().samples_per_frame);
  }

  void joined_is_whole(Gate& gate) {
    whole_ = listen(with({.first = kOneGroup, .next = kOneGroup})).samples;
    const Heard heard = listen(subject_.request);
    gate.check(same_samples(heard.samples, whole_),
               join("expected the ", whole_.size(), " samples of the whole, got ", heard.samples.size(),
                    " other ones from ", heard.events.size(), " events"));
    gate.check(heard.result.samples == static_cast<int64_t>(whole_.size()) &&
                   samples_of(heard.result.frames) == whole_.size(),
               join("expected a result of ", whole_.size(), " samples, got ", heard.result.samples, " and ",
                    heard.result.frames, " frames"));
  }

  void prefixes_grow(Gate& gate) {
    int64_t before = 0;
    listen(subject_.request, [&](const Heard& heard) {
      const int64_t frames = heard.events.back().frames;
      const bool grown = frames > before && heard.samples.size() == samples_of(frames);
      before = frames;
      gate.check(grown && heard.samples.size() <= whole_.size() &&
                     same_samples(heard.samples, std::span(whole_).first(heard.samples.size())),
                 join("expected event ", heard.events.size(), " to extend the beginning of the whole, got ",
                      heard.samples.size(), " samples and ", frames, " frames"));
      return true;
    });
    SpeechRequest half = subject_.request;
    half.max_frames = std::max<int64_t>(1, subject_.usual.frames / 2);
    const Heard heard = listen(half);
    gate.check(heard.samples.size() == samples_of(half.max_frames) && heard.samples.size() <= whole_.size() &&
                   same_samples(heard.samples, std::span(whole_).first(heard.samples.size())),
               join("expected the first ", half.max_frames, " frames of the whole from a cap there, got ",
                    heard.samples.size(), " samples"));
  }

  void first_is_one_frame(Gate& gate) {
    const Heard heard = listen(subject_.request);
    const EventRecord first = heard.events.empty() ? EventRecord{} : heard.events.front();
    gate.check(
        first.frames == 1 && first.samples == samples_of(1),
        join("expected 1 frame in the first event, got ", first.frames, " and ", first.samples, " samples"));
  }

  // Within each piece: one group of `first` frames, then groups of `next`, the last one of what is left.
  void groups_follow(Gate& gate) {
    for (const ChunkPolicy policy : {ChunkPolicy{}, ChunkPolicy{.first = 2, .next = 5}}) {
      const Heard heard = listen(with(policy));
      int64_t before = 0;
      for (size_t i = 0; i < heard.events.size(); ++i) {
        const EventRecord& event = heard.events[i];
        const bool first = i == 0 || heard.events[i - 1].piece != event.piece;
        const bool last = i + 1 == heard.events.size() || heard.events[i + 1].piece != event.piece;
        const int64_t group = first ? policy.first : policy.next;
        const int64_t frames = event.frames - before;
        before = event.frames;
        gate.check(last ? frames >= 1 && frames <= group : frames == group,
                   join("policy ", policy.first, "+", policy.next, ": expected ", group, " frames in event ",
                        i + 1, ", got ", frames));
      }
    }
  }

  void policies_agree(Gate& gate) {
    for (const ChunkPolicy policy : {ChunkPolicy{1, 1}, ChunkPolicy{4, 3}, ChunkPolicy{16, 16}}) {
      const std::string got = digest(listen(with(policy)).samples);
      gate.check(got == subject_.usual.sha256, join("policy ", policy.first, "+", policy.next, ": expected ",
                                                    subject_.usual.sha256, ", got ", got));
    }
  }

  void cancelling_stops(Gate& gate) {
    if (subject_.usual.frames < kFramesForCancelling) return;
    const ChunkPolicy each{.first = 1, .next = 1};
    const auto judge = [&](const char* how, const Heard& heard, int64_t asked) {
      const int64_t last = heard.events.empty() ? 0 : heard.events.back().frames;
      gate.check(
          heard.result.finish == Finish::kCancelled && last <= asked + 1 && heard.result.frames <= asked + 1,
          join(how, " at frame ", asked, ": expected cancelled within a frame, got ",
               finish_name(heard.result.finish), " after ", heard.result.frames, " frames"));
    };
    judge("the sink's false", listen(with(each), [](const Heard& heard) { return heard.events.size() < 3; }),
          3);
    for (const ChunkPolicy policy : {each, ChunkPolicy{}}) {
      std::stop_source source;
      SpeechRequest request = with(policy);
      request.stop = source.get_token();
      const Heard heard = listen(request, [&](const Heard& so_far) {
        if (so_far.events.back().frames == 1) source.request_stop();
        return true;
      });
      judge("a stop request", heard, 1);
    }
  }

  // The reader takes half as long again over each event as generating it took.
  void slow_reader(Gate& gate) {
    const double pause = 1.5 * subject_.usual.compute_seconds / static_cast<double>(subject_.usual.frames);
    const Heard heard = listen(subject_.request, [&](const Heard& so_far) {
      const size_t events = so_far.events.size();
      const int64_t before = events > 1 ? so_far.events[events - 2].frames : 0;
      std::this_thread::sleep_for(
          std::chrono::duration<double>(pause * static_cast<double>(so_far.events.back().frames - before)));
      return true;
    });
    const std::string got = digest(heard.samples);
    gate.check(
        got == subject_.usual.sha256 && heard.result.finish == subject_.usual.finish,
        join("expected ", subject_.usual.sha256, ", got ", got, " and ", finish_name(heard.result.finish)));
  }

  void error_is_reported(Gate& gate) {
    std::string outcome;
    try {
      const Heard heard = listen(with({.first = 1, .next = 1}), [](const Heard& so_far) {
        if (so_far.events.size() == 2) fail(kReaderFailed);
        return true;
      });
      outcome = join("a result that says ", finish_name(heard.result.finish));
    } catch (const Error& error) {
      outcome = error.what();
    }
    if (subject_.usual.frames < 2) return;
    gate.check(outcome.find(kReaderFailed) != std::string::npos,
               join("expected the reader's error, got ", outcome));
  }

  void usual_again(Gate& gate, const std::string& after) {
    const Heard heard = listen(subject_.request);
    const std::string got = digest(heard.samples);
    gate.check(
        got == subject_.usual.sha256 && heard.result.finish == subject_.usual.finish,
        join("after ", after, ": expected ", subject_.usual.sha256, " and ",
             finish_name(subject_.usual.finish), ", got ", got, " and ", finish_name(heard.result.finish)));
  }

  Engine& engine_;
  const StreamSubject& subject_;
  std::vector<float> whole_;  // the reply in one event a piece
};

}  // namespace

std::vector<Gate> check_stream_rules(Engine& engine, const StreamSubject& subject) {
  return StreamChecks(engine, subject).run();
}

std::vector<Gate> unchecked_stream_gates() {
  return {
      {.name = "stream-joined", .rule = "the events joined are the whole"},
      {.name = "stream-prefixes", .rule = "what was heard only grows and never changes"},
      {.name = "stream-first", .rule = "the first event is one frame"},
      {.name = "stream-groups", .rule = "the groups follow the policy"},
      {.name = "stream-policies", .rule = "three other policies give the same bytes"},
      {.name = "stream-cancel", .rule = "cancelling stops within a frame"},
      {.name = "stream-slow-reader", .rule = "a reader slower than generation loses nothing"},
      {.name = "stream-error", .rule = "an error after the first event is reported, never marked finished"},
      {.name = "stream-again", .rule = "the request after each of these gives its usual bytes"},
  };
}

}  // namespace drama3::bench
