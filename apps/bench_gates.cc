// The gates over the records of a run.
#include "apps/bench_gates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/bench_statistics.h"
#include "apps/progress.h"
#include "lib/base/error.h"
#include "lib/text/limits.h"

namespace drama3::bench {
namespace {

// How far the length of speech may be from what its text makes expect, either way: a reply beyond that is
// silence, a stutter or a loop.
constexpr double kLengthRatio = 4.0;
constexpr double kLongGrace = 1.0;      // seconds by which a very short reply may be longer
constexpr double kShortGrace = 0.25;    // or shorter than that
constexpr double kQuietestPeak = 1e-3;  // of full scale
constexpr double kMostClipped = 0.01;   // of all samples
constexpr double kStageSlack = 1.02;    // stages are parts of the whole, but for the clock's steps

std::string shortened(const std::string& sha256) { return sha256.substr(0, 16); }

bool same_reply(const RequestRecord& a, const RequestRecord& b) {
  return a.error.empty() && b.error.empty() && a.sha256 == b.sha256 && a.frames == b.frames;
}

class Judge {
 public:
  Judge(const Plan& plan, const std::vector<RankRecord>& ranks, const Judgement& judgement)
      : plan_(plan), ranks_(ranks), judgement_(judgement), requests_(merge_requests(ranks)) {
    verdict_.reasons.resize(plan.items.size());
  }

  Verdict run() {
    completed();
    passes_equal();
    equal_to_baseline();
    capped_exactly();
    ends_by_itself();
    plausible();
    for (const Gate& gate : stream_gates()) verdict_.gates.push_back(gate);
    memory();
    rtf_ceiling();
    return std::move(verdict_);
  }

 private:
  Gate& open(const char* name, const char* rule) {
    return verdict_.gates.emplace_back(Gate{.name = name, .rule = rule});
  }

  // Counts a test of one item; a failure spoils its figures.
  void check(Gate& gate, const RequestRecord& request, bool good, const std::string& sentence) {
    const std::string& id = plan_.items[request.item].id;
    if (gate.check(good, join(id, " pass ", request.pass, ": ", sentence))) return;
    std::vector<std::string>& reasons = verdict_.reasons[request.item];
    const bool told = std::any_of(reasons.begin(), reasons.end(),
                                  [&](const auto& reason) { return reason.starts_with(gate.name + ":"); });
    if (!told) reasons.push_back(gate.name + ": pass " + std::to_string(request.pass) + ": " + sentence);
  }

  // Every pass of every item was spoken, by the rank that had to.
  void completed() {
    Gate& gate = open("completed", "every request of every pass was answered without an error");
    for (size_t item = 0; item < plan_.items.size(); ++item) {
      for (int pass = 1; pass <= plan_.passes; ++pass) {
        const auto found = std::find_if(
            requests_.begin(), requests_.end(),
            [&](const RequestRecord& request) { return request.item == item && request.pass == pass; });
        const bool absent = found == requests_.end();
        const RequestRecord request = absent ? RequestRecord{.item = item, .pass = pass} : *found;
        check(gate, request, !absent && request.error.empty(),
              absent ? "expected a reply, got none" : "expected a reply, got: " + request.error);
      }
    }
  }

  void passes_equal() {
    Gate& gate = open("passes-equal", "every pass gives the bytes of the first");
    const RequestRecord* first = nullptr;
    for (const RequestRecord& request : requests_) {
      if (first == nullptr || first->item != request.item) {
        first = &request;
        continue;
      }
      check(gate, request, same_reply(request, *first),
            join("expected ", shortened(first->sha256), " as in pass ", first->pass, ", got ",
                 shortened(request.sha256)));
    }
  }

  void equal_to_baseline() {
    Gate& gate = open("baseline", "every item gives the bytes recorded for this backend and checkpoint");
    if (!judgement_.baseline) return;
    const Baseline& baseline = *judgement_.baseline;
    const RankRecord& rank = ranks_.front();
    const std::string backend = backend_class(rank.engine.device);
    if (!gate.check(baseline.backend == backend && baseline.checkpoint == rank.checkpoint_hash,
                    join(baseline.path, ": expected a baseline of ", backend, " and checkpoint ",
                         shortened(rank.checkpoint_hash), ", got one of ", baseline.backend, " and ",
                         shortened(baseline.checkpoint)))) {
      return;
    }
    for (const RequestRecord& request : requests_) {
      const CorpusItem& item = plan_.items[request.item];
      const auto found = baseline.items.find(item.id);
      if (found == baseline.items.end()) {
        check(gate, request, false, "expected a recorded digest, got none in the baseline");
      } else if (found->second.request != request_digest(item)) {
        check(gate, request, false, "expected the recorded request, got another text or other settings");
      } else {
        check(gate, request, request.sha256 == found->second.sha256,
              join("expected ", shortened(found->second.sha256), " as recorded, got ",
                   shortened(request.sha256)));
      }
    }
  }

  void capped_exactly() {
    Gate& gate = open("capped-exactly", "a capped item is cut at exactly its cap in every pass");
    for (const RequestRecord& request : requests_) {
      const CorpusItem& item = plan_.items[request.item];
      if (!item.capped) continue;
      check(gate, request, request.finish == Finish::kLength && request.frames == item.max_frames,
            join("expected length at ", item.max_frames, " frames, got ", finish_name(request.finish), " at ",
                 request.frames));
    }
  }

  void ends_by_itself() {
    Gate& gate = open("ends-by-itself", "every other item ends its speech itself");
    for (const RequestRecord& request : requests_) {
      if (plan_.items[request.item].capped) continue;
      check(gate, request, request.error.empty() && request.finish == Finish::kStop,
            join("expected stop, got ", request.error.empty() ? finish_name(request.finish) : "an error",
                 " at ", request.frames, " frames"));
    }
  }

  void plausible() {
    Gate& gate = open("plausible", "length, level and times are those of speech");
    for (const RequestRecord& request : requests_) {
      check(gate, request, implausible(request).empty(), implausible(request));
    }
  }

  // What is wrong with the request's figures, empty for nothing.
  std::string implausible(const RequestRecord& request) const {
    const EngineInfo& engine = engine_of(request);
    const CorpusItem& item = plan_.items[request.item];
    const int64_t samples = request.frames * engine.samples_per_frame;
    if (request.frames < 1 || request.samples != samples) {
      return join("expected ", samples, " samples of at least 1 frame, got ", request.samples);
    }
    if (request.peak < kQuietestPeak) return "expected sound, got silence";
    if (static_cast<double>(request.clipped) > kMostClipped * static_cast<double>(request.samples)) {
      return join("expected at most 1 % of the samples clipped, got ", request.clipped);
    }
    const double seconds = audio_seconds(request, engine);
    const double expected = expected_seconds(item.text);
    const bool longer = seconds > expected * kLengthRatio + kLongGrace;
    const bool shorter = seconds < expected / kLengthRatio - kShortGrace;
    if (longer || (shorter && !item.capped)) {
      return "expected about " + decimal(expected, 1) + " s of speech, got " + decimal(seconds, 1);
    }
    const StageSeconds& stages = request.stages;
    const double sum = stages.prompt + stages.backbone + stages.tower + stages.sampler + stages.codec;
    const double least =
        std::min({stages.prompt, stages.backbone, stages.tower, stages.sampler, stages.codec});
    if (!(least >= 0 && request.compute_seconds > 0 && request.first_audio_seconds > 0 &&
          sum <= request.compute_seconds * kStageSlack &&
          request.first_audio_seconds <= request.compute_seconds * kStageSlack)) {
      return join("expected stages and first audio within the compute time of ", request.compute_seconds,
                  " s, got ", sum, " and ", request.first_audio_seconds);
    }
    return "";
  }

  const EngineInfo& engine_of(const RequestRecord& request) const {
    for (const RankRecord& rank : ranks_) {
      if (rank.rank == request.rank) return rank.engine;
    }
    return ranks_.front().engine;
  }

  // Each rank's gates added up.
  std::vector<Gate> stream_gates() const {
    std::vector<Gate> sums;
    for (const RankRecord& rank : ranks_) {
      for (size_t i = 0; i < rank.stream_gates.size(); ++i) {
        const Gate& gate = rank.stream_gates[i];
        if (i >= sums.size()) sums.push_back({.name = gate.name, .rule = gate.rule});
        sums[i].checked += gate.checked;
        sums[i].failed += gate.failed;
        if (sums[i].first_failure.empty() && gate.failed > 0) {
          sums[i].first_failure = join(rank.stream_item, where(rank), ": ", gate.first_failure);
        }
      }
    }
    return sums;
  }

  std::string where(const RankRecord& rank) const {
    return ranks_.size() > 1 ? join(" on rank ", rank.rank) : "";
  }

  void memory() {
    Gate& gate = open("memory", "no pass leaves 4 MiB more memory in use than the first");
    for (const RankRecord& rank : ranks_) {
      for (size_t pass = 1; pass < rank.memory_bytes.size(); ++pass) {
        const int64_t growth = rank.memory_bytes[pass] - rank.memory_bytes.front();
        gate.check(growth <= kMemoryGrowth,
                   join("pass ", pass + 1, where(rank), ": expected at most ", kMemoryGrowth,
                        " bytes more than after pass 1, got ", growth));
      }
    }
  }

  // Missing the ceiling does not spoil a figure: it is the figure.
  void rtf_ceiling() {
    if (!judgement_.max_rtf) return;
    Gate& gate = open("rtf-ceiling", "the median RTF of every item is at most --max-rtf");
    for (size_t item = 0; item < plan_.items.size(); ++item) {
      std::vector<double> factors;
      for (const RequestRecord& request : requests_) {
        if (request.item != item || request.samples == 0) continue;
        factors.push_back(real_time_factor(request, engine_of(request)));
      }
      if (factors.empty()) continue;
      const double median = summarise(factors).median;
      gate.check(median <= *judgement_.max_rtf, plan_.items[item].id + ": expected at most " +
                                                    decimal(*judgement_.max_rtf, 3) + ", got " +
                                                    decimal(median, 3));
    }
  }

  const Plan& plan_;
  const std::vector<RankRecord>& ranks_;
  const Judgement& judgement_;
  std::vector<RequestRecord> requests_;
  Verdict verdict_;
};

}  // namespace

int64_t Verdict::failed_gates() const {
  return std::count_if(gates.begin(), gates.end(), [](const Gate& gate) { return gate.failed > 0; });
}

Verdict judge(const Plan& plan, const std::vector<RankRecord>& ranks, const Judgement& judgement) {
  return Judge(plan, ranks, judgement).run();
}

std::vector<RequestRecord> merge_requests(const std::vector<RankRecord>& ranks) {
  std::vector<RequestRecord> requests;
  for (const RankRecord& rank : ranks) {
    requests.insert(requests.end(), rank.requests.begin(), rank.requests.end());
  }
  std::sort(requests.begin(), requests.end(), [](const RequestRecord& a, const RequestRecord& b) {
    return a.item != b.item ? a.item < b.item : a.pass < b.pass;
  });
  return requests;
}

void check_ranks_agree(const std::vector<RankRecord>& ranks) {
  const RankRecord& first = ranks.front();
  for (const RankRecord& rank : ranks) {
    if (!rank.error.empty()) {
      if (ranks.size() == 1) fail(rank.error);
      fail("rank ", rank.rank, ": ", rank.error);
    }
    if (rank.checkpoint_hash != first.checkpoint_hash ||
        backend_class(rank.engine.device) != backend_class(first.engine.device)) {
      fail("rank ", rank.rank, ": expected ", first.engine.device, " and checkpoint ", first.checkpoint_hash,
           " as on rank ", first.rank, ", got ", rank.engine.device, " and ", rank.checkpoint_hash);
    }
  }
}

double audio_seconds(const RequestRecord& request, const EngineInfo& engine) {
  return static_cast<double>(request.samples) / static_cast<double>(engine.sample_rate);
}

double real_time_factor(const RequestRecord& request, const EngineInfo& engine) {
  if (request.samples == 0) return std::numeric_limits<double>::quiet_NaN();
  return request.compute_seconds / audio_seconds(request, engine);
}

}  // namespace drama3::bench
