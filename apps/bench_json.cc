// The JSON document of drama3-bench.
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/bench_report.h"
#include "apps/tool.h"
#include "lib/base/error.h"

namespace drama3::bench {
namespace {

using Json = nlohmann::ordered_json;

// A number, or null where there is none: JSON has no NaN.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

template <typename Value>
Json maybe(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json summary_json(const std::optional<Summary>& summary) {
  if (!summary) return Json();
  return {{"n", summary->n},
          {"median", finite(summary->median)},
          {"mean", finite(summary->mean)},
          {"stddev", maybe(summary->stddev)},
          {"min", finite(summary->min)},
          {"max", finite(summary->max)},
          {"p95", maybe(summary->p95)}};
}

Json stages_json(const StageSeconds& stages) {
  return {{"prompt", stages.prompt},
          {"backbone", stages.backbone},
          {"tower", stages.tower},
          {"sampler", stages.sampler},
          {"codec", stages.codec}};
}

Json samples_json(const Row& row) {
  Json samples{{"compute_seconds", Json::array()}, {"first_audio_seconds", Json::array()}};
  Json stages{{"prompt", Json::array()},
              {"backbone", Json::array()},
              {"tower", Json::array()},
              {"sampler", Json::array()},
              {"codec", Json::array()}};
  for (const RequestRecord& request : row.requests) {
    samples["compute_seconds"].push_back(finite(request.compute_seconds));
    samples["first_audio_seconds"].push_back(finite(request.first_audio_seconds));
    const Json of_request = stages_json(request.stages);
    for (const auto& [name, seconds] : of_request.items()) stages[name].push_back(seconds);
  }
  samples["stages"] = stages;
  return samples;
}

Json row_json(const Row& row) {
  Json settings = Json::object();
  if (row.item.temperature) settings["temperature"] = *row.item.temperature;
  if (row.item.top_p) settings["top_p"] = *row.item.top_p;
  if (row.item.top_k) settings["top_k"] = *row.item.top_k;
  Json entry{
      {"id", row.item.id}, {"category", row.item.category}, {"settings", settings}, {"seed", row.item.seed}};
  const bool answered = !row.requests.empty();
  entry["frames"] = answered ? Json(row.requests.front().frames) : Json();
  entry["audio_seconds"] = answered ? finite(row.audio_seconds) : Json();
  entry["finish_reason"] = answered ? Json(finish_name(row.requests.front().finish)) : Json();
  entry["sha256"] = answered ? Json(row.requests.front().sha256) : Json();
  entry["samples"] = samples_json(row);
  entry["summary"] = {{"rtf", summary_json(row.rtf)},
                      {"compute_seconds", summary_json(row.compute)},
                      {"first_audio_seconds", summary_json(row.first_audio)}};
  if (!row.valid()) entry["summary"] = Json();
  entry["valid"] = row.valid();
  entry["reasons"] = row.reasons;
  return entry;
}

Json totals_json(const Totals& totals) {
  return {{"requests", totals.requests},
          {"valid_requests", totals.valid_requests},
          {"audio_seconds", finite(totals.audio_seconds)},
          {"compute_seconds", finite(totals.compute_seconds)},
          {"rtf", finite(totals.compute_seconds / totals.audio_seconds)},
          {"rtf_of_requests", summary_json(totals.rtf)},
          {"first_audio_seconds", summary_json(totals.first_audio)},
          {"stages", stages_json(totals.stages)}};
}

// A fact's number as JSON reads it; its text where it is none.
Json fact_json(const Fact& fact) {
  if (!fact.is_number) return fact.value;
  const Json number = Json::parse(fact.value, nullptr, false);
  return number.is_number() ? number : Json(fact.value);
}

}  // namespace

std::string json_text(const Report& report) {
  Json document;
  document["schema"] = schema_name(Tool::kBench);
  for (const Fact& fact : report.facts) document["context"][fact.key] = fact_json(fact);
  document["rules"] = report.rules;
  document["results"] = Json::array();
  for (const Row& row : report.rows) document["results"].push_back(row_json(row));
  document["totals"] = totals_json(report.totals);
  document["gates"] = Json::array();
  for (const Gate& gate : report.gates) {
    document["gates"].push_back({{"name", gate.name},
                                 {"rule", gate.rule},
                                 {"checked", gate.checked},
                                 {"failed", gate.failed},
                                 {"first_failure", gate.failed > 0 ? Json(gate.first_failure) : Json()}});
  }
  document["remarks"] = report.remarks;
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace drama3::bench
