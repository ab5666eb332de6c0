// The table and the JSON document of drama3-oracle.
#include "apps/oracle_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/progress.h"
#include "apps/tool.h"
#include "apps/version_text.h"

namespace drama3 {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kColumns = 11;
using Line = std::array<std::string, kColumns>;

// "1.2e-05".
std::string error_text(double value) {
  if (!std::isfinite(value)) return "inf";
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  std::string result = text;
  std::replace(result.begin(), result.end(), ',', '.');
  return value == 0.0 ? "0" : result;
}

std::string verdict(const Comparison& comparison) {
  return !comparison.judged ? "shown" : comparison.passed ? "pass" : "FAIL";
}

Line line_of(const Comparison& comparison) {
  const Distance& d = comparison.distance;
  const bool exact = comparison.bar.equal;  // integers: what counts is how many differ
  return {comparison.stage,
          comparison.tensor,
          comparison.shape,
          exact ? join(d.different, " of ", d.entries, " differ") : error_text(d.worst_absolute),
          exact ? "" : error_text(d.relative_l2),
          exact ? "" : error_text(d.worst_row_relative()),
          exact ? "" : decimal(d.worst_cosine(), 6),
          d.worst_kl ? error_text(*d.worst_kl) : "",
          d.overlap ? decimal(*d.overlap, 2) : "",
          bar_text(comparison.bar),
          verdict(comparison)};
}

// Code points, which is what a terminal's columns show of these texts.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string row_text(const Line& line, const std::array<size_t, kColumns>& widths) {
  std::string text = "|";
  for (size_t i = 0; i < kColumns; ++i) {
    const bool left = i < 3 || i >= 9;
    const std::string blanks(widths[i] - width_of(line[i]), ' ');
    text += " " + (left ? line[i] + blanks : blanks + line[i]) + " |";
  }
  return text + "\n";
}

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json json_comparison(const Comparison& comparison) {
  const Distance& d = comparison.distance;
  Json entry;
  entry["stage"] = comparison.stage;
  entry["tensor"] = comparison.tensor;
  entry["shape"] = comparison.shape;
  entry["different"] = d.different;
  entry["worst_absolute"] = finite(d.worst_absolute);
  entry["worst_entry"] = finite(d.worst_entry);
  entry["relative_l2"] = finite(d.relative_l2);
  entry["worst_row_relative_l2"] = finite(d.worst_row_relative());
  entry["worst_row"] = d.worst_row;
  entry["worst_row_cosine"] = finite(d.worst_cosine());
  entry["median_row_cosine"] = finite(d.median_cosine());
  entry["worst_kl"] = d.worst_kl ? finite(*d.worst_kl) : Json();
  entry["top_30_overlap"] = d.overlap ? finite(*d.overlap) : Json();
  entry["bar"] = bar_text(comparison.bar);
  entry["judged"] = comparison.judged;
  entry["passed"] = comparison.passed;
  entry["remark"] = comparison.remark;
  return entry;
}

int64_t judged_count(const OracleReport& report) {
  return std::count_if(report.comparisons.begin(), report.comparisons.end(),
                       [](const Comparison& comparison) { return comparison.judged; });
}

std::string departure_text(const Comparison& comparison) {
  return comparison.stage + " " + comparison.tensor +
         (comparison.remark.empty() ? "" : ": " + comparison.remark) +
         (comparison.distance.row_relative.size() > 1
              ? join(" (worst row ", comparison.distance.worst_row, ")")
              : "");
}

}  // namespace

int64_t failed_count(const OracleReport& report) {
  return std::count_if(report.comparisons.begin(), report.comparisons.end(),
                       [](const Comparison& comparison) { return comparison.judged && !comparison.passed; });
}

const Comparison* first_departure(const OracleReport& report) {
  for (const Comparison& comparison : report.comparisons) {
    if (comparison.judged && !comparison.passed) return &comparison;
  }
  return nullptr;
}

std::string oracle_table(const OracleReport& report) {
  std::vector<Line> lines = {{"stage", "tensor", "shape", "worst abs", "rel L2", "row L2", "row cos", "KL",
                              "top-30", "bar", "result"}};
  for (const Comparison& comparison : report.comparisons) lines.push_back(line_of(comparison));
  std::array<size_t, kColumns> widths{};
  for (const Line& line : lines) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], width_of(line[i]));
  }
  std::string text = row_text(lines.front(), widths) + "|";
  for (size_t i = 0; i < kColumns; ++i) {
    const bool left = i < 3 || i >= 9;
    text += std::string(widths[i] + 1, '-') + (left ? "-|" : ":|");
  }
  text += "\n";
  for (size_t i = 1; i < lines.size(); ++i) text += row_text(lines[i], widths);
  text += "\n";
  for (const Comparison& comparison : report.comparisons) {
    if (!comparison.remark.empty()) text += comparison.tensor + ": " + comparison.remark + "\n";
  }
  if (const Comparison* first = first_departure(report))
    text += "first departure: " + departure_text(*first) + "\n";
  const int64_t failed = failed_count(report);
  return text + join(judged_count(report) - failed, " passed, ", failed, " failed\n");
}

std::string json_oracle(const OracleReport& report) {
  const int64_t failed = failed_count(report);
  const Comparison* first = first_departure(report);
  Json document;
  document["schema"] = schema_name(Tool::kOracle);
  document["version"] = version_number();
  document["model"] = report.model;
  document["reference"] = report.reference;
  document["device"] = report.device;
  document["device_name"] = report.device_name;
  document["threads"] = report.threads;
  document["activations"] = report.half_activations ? "bf16" : "f32";
  document["codec"] = report.half_codec ? "f16" : "f32";
  document["quantize_activations"] = report.quantize_activations;
  document["force_routing"] = report.force_routing;
  document["results"] = Json::array();
  for (const Comparison& comparison : report.comparisons)
    document["results"].push_back(json_comparison(comparison));
  document["remarks"] = report.remarks;
  document["first_departure"] = first != nullptr ? Json(departure_text(*first)) : Json();
  document["passed"] = judged_count(report) - failed;
  document["failed"] = failed;
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace drama3
