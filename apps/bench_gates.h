// The rules that a run of the corpus is judged by.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/bench_baseline.h"
#include "apps/bench_share.h"

namespace drama3::bench {

// How much anonymous memory may grow between the first pass and a later one.
inline constexpr int64_t kMemoryGrowth = 4 << 20;

// What the gates need beside the records.
struct Judgement {
  std::optional<Baseline> baseline;  // nothing: not checked
  std::optional<double> max_rtf;     // of the median of each item
};

// Every gate, and why an item's figures do not count.
struct Verdict {
  std::vector<Gate> gates;
  std::vector<std::vector<std::string>> reasons;  // [items]; "gate: what was expected and got"

  int64_t failed_gates() const;
};

// Judges all ranks together.
Verdict judge(const Plan& plan, const std::vector<RankRecord>& ranks, const Judgement& judgement);

// All requests, by item and then pass.
std::vector<RequestRecord> merge_requests(const std::vector<RankRecord>& ranks);

// Error naming the rank that failed, or that has another backend class or checkpoint than the first.
void check_ranks_agree(const std::vector<RankRecord>& ranks);

// Length of the reply.
double audio_seconds(const RequestRecord& request, const EngineInfo& engine);

// Seconds of compute per second of audio; NaN for a request without audio.
double real_time_factor(const RequestRecord& request, const EngineInfo& engine);

}  // namespace drama3::bench
