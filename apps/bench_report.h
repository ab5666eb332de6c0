// Everything that the table, the JSON document and the reports of drama3-bench are written from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/bench_context.h"
#include "apps/bench_gates.h"
#include "apps/bench_statistics.h"

namespace drama3::bench {

// One item over all its passes.
struct Row {
  CorpusItem item;
  std::vector<RequestRecord> requests;  // that were answered, by pass
  double audio_seconds = 0.0;           // of the first
  std::optional<Summary> rtf;           // nothing when no request was answered
  std::optional<Summary> first_audio;   // seconds
  std::optional<Summary> compute;       // seconds
  std::vector<std::string> reasons;     // why its figures do not count

  bool valid() const { return reasons.empty() && rtf.has_value(); }
};

// Over the requests of all valid rows.
struct Totals {
  int64_t requests = 0;        // of all rows
  int64_t valid_requests = 0;  // those that the figures below are of
  double audio_seconds = 0.0;
  double compute_seconds = 0.0;
  std::optional<Summary> rtf;
  std::optional<Summary> first_audio;
  StageSeconds stages;
};

struct Report {
  std::vector<Fact> facts;
  std::vector<std::string> rules;
  std::vector<Row> rows;
  Totals totals;
  std::vector<Gate> gates;
  std::vector<std::string> remarks;  // slow first pass, outliers, absent baseline
  std::vector<SoundPicture> pictures;
};

// Rows, totals and remarks of a judged run; facts and rules are the caller's.
Report make_report(const Plan& plan, const std::vector<RankRecord>& ranks, const Verdict& verdict);

// "31 passed, 0 failed", with "2 not checked" where that is so.
std::string closing_text(const std::vector<Gate>& gates);

// The table of standard output: context, rules, rows, totals, gates; Markdown that aligns in a terminal.
std::string table_text(const Report& report);

// The same as a document for CI logs.
std::string markdown_text(const Report& report);

// The document of --json, schema drama3-bench/1.
std::string json_text(const Report& report);

// A self-contained page.
std::string html_text(const Report& report);

}  // namespace drama3::bench
