// Rows, totals and remarks of a run.
#include "apps/bench_report.h"

#include <algorithm>

#include "apps/progress.h"
#include "lib/base/error.h"

namespace drama3::bench {
namespace {

constexpr double kSlowPass = 1.10;  // a first pass this much slower than the others is told
constexpr double kOutlier = 1.5;    // and an item whose slowest pass is this much slower than its fastest

void add(StageSeconds& sum, const StageSeconds& stages) {
  sum.prompt += stages.prompt;
  sum.backbone += stages.backbone;
  sum.tower += stages.tower;
  sum.sampler += stages.sampler;
  sum.codec += stages.codec;
}

Row make_row(const CorpusItem& item, const std::vector<RequestRecord>& requests, const EngineInfo& engine) {
  Row row{.item = item, .requests = requests};
  std::vector<double> factors, first, compute;
  for (const RequestRecord& request : requests) {
    if (request.samples == 0) continue;
    factors.push_back(real_time_factor(request, engine));
    first.push_back(request.first_audio_seconds);
    compute.push_back(request.compute_seconds);
  }
  if (factors.empty()) return row;
  row.audio_seconds = audio_seconds(requests.front(), engine);
  row.rtf = summarise(factors);
  row.first_audio = summarise(first);
  row.compute = summarise(compute);
  return row;
}

Totals make_totals(const std::vector<Row>& rows, const EngineInfo& engine) {
  Totals totals;
  std::vector<double> factors, first;
  for (const Row& row : rows) {
    totals.requests += static_cast<int64_t>(row.requests.size());
    if (!row.valid()) continue;
    for (const RequestRecord& request : row.requests) {
      ++totals.valid_requests;
      totals.audio_seconds += audio_seconds(request, engine);
      totals.compute_seconds += request.compute_seconds;
      factors.push_back(real_time_factor(request, engine));
      first.push_back(request.first_audio_seconds);
      add(totals.stages, request.stages);
    }
  }
  if (!factors.empty()) totals.rtf = summarise(factors);
  if (!first.empty()) totals.first_audio = summarise(first);
  return totals;
}

std::vector<std::string> remarks_on(const Plan& plan, const std::vector<Row>& rows) {
  std::vector<double> seconds(static_cast<size_t>(plan.passes), 0.0);
  std::string outliers;
  for (const Row& row : rows) {
    for (const RequestRecord& request : row.requests) {
      seconds[static_cast<size_t>(request.pass - 1)] += request.compute_seconds;
    }
    if (row.valid() && row.rtf->max > row.rtf->min * kOutlier) {
      outliers += (outliers.empty() ? "" : ", ") + row.item.id;
    }
  }
  std::vector<std::string> remarks;
  if (plan.passes > 1) {
    const double others = (summarise(seconds).mean * plan.passes - seconds[0]) / (plan.passes - 1);
    if (seconds[0] > others * kSlowPass) {
      remarks.push_back("pass 1 took " + decimal(seconds[0], 1) + " s, the others " + decimal(others, 1) +
                        " s each: the machine was not warm or not quiet");
    }
  }
  if (!outliers.empty()) {
    remarks.push_back("outliers, slowest pass above 1.5 times the fastest: " + outliers +
                      "; the machine was not quiet");
  }
  return remarks;
}

}  // namespace

Report make_report(const Plan& plan, const std::vector<RankRecord>& ranks, const Verdict& verdict) {
  const EngineInfo& engine = ranks.front().engine;
  Report report{.gates = verdict.gates};
  std::vector<std::vector<RequestRecord>> requests(plan.items.size());
  for (const RequestRecord& request : merge_requests(ranks)) {
    if (request.error.empty()) requests[request.item].push_back(request);
  }
  for (size_t i = 0; i < plan.items.size(); ++i) {
    report.rows.push_back(make_row(plan.items[i], requests[i], engine));
    report.rows.back().reasons = verdict.reasons[i];
  }
  report.totals = make_totals(report.rows, engine);
  report.remarks = remarks_on(plan, report.rows);
  for (const RankRecord& rank : ranks) {
    report.pictures.insert(report.pictures.end(), rank.pictures.begin(), rank.pictures.end());
  }
  return report;
}

std::string closing_text(const std::vector<Gate>& gates) {
  int64_t failed = 0;
  int64_t unchecked = 0;
  for (const Gate& gate : gates) {
    if (gate.failed > 0) ++failed;
    if (gate.checked == 0) ++unchecked;
  }
  const int64_t passed = static_cast<int64_t>(gates.size()) - failed - unchecked;
  return join(passed, " passed, ", failed, " failed",
              unchecked > 0 ? join(", ", unchecked, " not checked") : std::string());
}

}  // namespace drama3::bench
