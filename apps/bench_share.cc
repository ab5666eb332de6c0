// Warm-up, passes and what is kept of every request.
#include "apps/bench_share.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>

#include "apps/bench_stream.h"
#include "lib/audio/audio_writer.h"
#include "lib/audio/sample_conversion.h"
#include "lib/base/error.h"
#include "lib/base/sha256.h"

namespace drama3::bench {
namespace {

// Takes a reply's events as they come.
class Listener {
 public:
  explicit Listener(bool keep) : keep_(keep) {}

  bool take(const SpeechEvent& event) {
    converted_.resize(event.samples.size());
    convert_samples(converted_, event.samples, level_);
    hash_.update(std::as_bytes(std::span(converted_)));
    if (keep_) kept_.insert(kept_.end(), event.samples.begin(), event.samples.end());
    return true;
  }
  void fill(RequestRecord* record) {
    record->samples = static_cast<int64_t>(level_.samples);
    record->peak = static_cast<double>(level_.peak);
    record->clipped = level_.clipped;
    record->sha256 = hash_.hex();
  }
  const std::vector<float>& kept() const { return kept_; }

 private:
  bool keep_;
  std::vector<int16_t> converted_;
  std::vector<float> kept_;
  LevelMeter level_;
  Sha256 hash_;
};

void save_wav(const std::string& path, std::span<const float> samples, int64_t sample_rate) {
  std::vector<int16_t> converted(samples.size());
  LevelMeter level;
  convert_samples(converted, samples, level);
  const auto writer = open_audio_writer(check_output(path), AudioFormat::kWav, static_cast<int>(sample_rate));
  writer->write(converted);
  writer->finish();
}

// The request with the fewest frames that still has several groups, else the one with the most frames.
const RequestRecord* choose_stream_request(const std::vector<RequestRecord>& requests) {
  static constexpr int64_t kEnoughFrames = 12;
  const RequestRecord* chosen = nullptr;
  for (const RequestRecord& request : requests) {
    if (!request.error.empty() || request.frames == 0) continue;
    const bool enough = request.frames >= kEnoughFrames;
    const bool chosen_enough = chosen != nullptr && chosen->frames >= kEnoughFrames;
    const bool better = chosen == nullptr || (enough && !chosen_enough) ||
                        (enough && request.frames < chosen->frames) ||
                        (!enough && !chosen_enough && request.frames > chosen->frames);
    if (better) chosen = &request;
  }
  return chosen;
}

class Share {
 public:
  Share(Engine& engine, const Plan& plan, int rank, const RequestListener& listener)
      : engine_(engine), plan_(plan), rank_(rank), listener_(listener) {}

  RankRecord run() {
    record_.rank = rank_;
    record_.engine = engine_.info();
    record_.checkpoint_hash = engine_.checkpoint_hash();
    warm_up();
    for (int pass = 1; pass <= plan_.passes; ++pass) {
      for (size_t item = 0; item < plan_.items.size(); ++item) {
        if (is_mine(plan_, item, pass, rank_)) speak(item, pass);
      }
      record_.memory_bytes.push_back(resident_bytes());
    }
    check_stream();
    return std::move(record_);
  }

 private:
  // Every warm-up request is the first of this rank's share, and nothing of it is kept: an Error comes again
  // in the passes, where it is recorded.
  void warm_up() {
    size_t item = 0;
    while (item < plan_.items.size() && !is_mine(plan_, item, 1, rank_)) ++item;
    if (item == plan_.items.size()) return;
    try {
      for (int i = 0; i < plan_.warmup; ++i) {
        engine_.speak(request_of(plan_.items[item], engine_.default_sampling()), {});
      }
    } catch (const Error&) {
    }
  }

  void speak(size_t index, int pass) {
    const CorpusItem& item = plan_.items[index];
    const bool shown = pass == 1 && matches(plan_.show_patterns, item.id);
    const bool saved = pass == 1 && !plan_.save_folder.empty();
    Listener listener(shown || saved);
    RequestRecord request{.item = index, .pass = pass, .rank = rank_};
    try {
      const SpeechResult result =
          engine_.speak(request_of(item, engine_.default_sampling()),
                        [&](const SpeechEvent& event) { return listener.take(event); });
      request.frames = result.frames;
      request.finish = result.finish;
      request.compute_seconds = result.compute_seconds;
      request.first_audio_seconds = result.first_audio_seconds;
      request.stages = result.stages;
      listener.fill(&request);
    } catch (const Error& error) {
      request.error = error.what();
    }
    const int64_t sample_rate = record_.engine.sample_rate;
    if (saved && request.error.empty()) {
      save_wav(plan_.save_folder + "/" + item.id + ".wav", listener.kept(), sample_rate);
    }
    if (shown) record_.pictures.push_back(draw_sound(item.id, listener.kept(), sample_rate));
    if (listener_) listener_(item, request);
    record_.requests.push_back(std::move(request));
  }

  void check_stream() {
    const RequestRecord* const chosen = choose_stream_request(record_.requests);
    if (chosen == nullptr) {
      record_.stream_gates = unchecked_stream_gates();
      return;
    }
    const CorpusItem& item = plan_.items[chosen->item];
    record_.stream_item = item.id;
    record_.stream_gates = check_stream_rules(
        engine_, {.request = request_of(item, engine_.default_sampling()), .usual = *chosen});
  }

  Engine& engine_;
  const Plan& plan_;
  int rank_;
  const RequestListener& listener_;
  RankRecord record_;
};

}  // namespace

bool is_mine(const Plan& plan, size_t item, int pass, int rank) {
  return (item + static_cast<size_t>(pass - 1)) % static_cast<size_t>(plan.ranks) ==
         static_cast<size_t>(rank);
}

int64_t resident_bytes() {
  ::malloc_trim(0);
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    int64_t kibibytes = 0;
    if (word == "RssAnon:" && status >> kibibytes) return kibibytes * 1024;
  }
  fail("/proc/self/status: expected a line RssAnon, got none");
}

RankRecord run_share(Engine& engine, const Plan& plan, int rank, const RequestListener& listener) {
  return Share(engine, plan, rank, listener).run();
}

}  // namespace drama3::bench
