// The Markdown of drama3-bench: aligned tables for a terminal, and the report for CI logs.
#include <algorithm>

#include "apps/bench_report.h"
#include "apps/progress.h"
#include "lib/base/error.h"

namespace drama3::bench {
namespace {

using Cells = std::vector<std::string>;

// Columns that text takes: code points, since all of ours are one column wide.
size_t columns_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// A table whose columns line up; `right` names the right-aligned ones.
class MarkdownTable {
 public:
  MarkdownTable(Cells heading, std::vector<bool> right) : right_(std::move(right)) {
    lines_.push_back(std::move(heading));
  }
  void add(Cells cells) { lines_.push_back(std::move(cells)); }

  std::string text() const {
    std::vector<size_t> widths(right_.size(), 3);
    for (const Cells& cells : lines_) {
      for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], columns_of(cells[i]));
    }
    std::string text = line(lines_[0], widths) + "|";
    for (size_t i = 0; i < widths.size(); ++i) {
      text +=
          (right_[i] ? std::string(widths[i] + 1, '-') + ":" : ":" + std::string(widths[i] + 1, '-')) + "|";
    }
    text += "\n";
    for (size_t i = 1; i < lines_.size(); ++i) text += line(lines_[i], widths);
    return text;
  }

 private:
  std::string line(const Cells& cells, const std::vector<size_t>& widths) const {
    std::string text = "|";
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string space(widths[i] - columns_of(cells[i]), ' ');
      text += " " + (right_[i] ? space + cells[i] : cells[i] + space) + " |";
    }
    return text + "\n";
  }

  std::vector<bool> right_;
  std::vector<Cells> lines_;
};

std::string with_spread(const Summary& summary, double scale, int digits) {
  std::string text = decimal(summary.median * scale, digits);
  if (summary.stddev) text += " ± " + decimal(*summary.stddev * scale, digits);
  return text;
}

std::string shortened(const std::string& sha256) { return sha256.substr(0, 12); }

Cells row_cells(const Row& row) {
  if (!row.valid()) {
    const std::string reason = row.reasons.empty() ? "no reply" : row.reasons.front();
    return {row.item.id, row.rtf ? decimal(row.audio_seconds, 2) : "-", "INVALID", "-", "-", "-",
            "-",         reason.substr(0, reason.find(':')) + " failed"};
  }
  return {row.item.id,
          decimal(row.audio_seconds, 2),
          with_spread(*row.rtf, 1, 4),
          decimal(row.rtf->min, 4) + " … " + decimal(row.rtf->max, 4),
          with_spread(*row.first_audio, 1e3, 2),
          decimal(1 / row.rtf->median, 1),
          shortened(row.requests.front().sha256),
          "passed"};
}

std::string rows_table(const Report& report) {
  MarkdownTable table(
      {"request", "audio s", "RTF", "min … max", "first audio ms", "x real time", "sha256", "gates"},
      {false, true, true, true, true, true, false, false});
  for (const Row& row : report.rows) table.add(row_cells(row));
  return table.text();
}

std::string gates_table(const Report& report) {
  MarkdownTable table({"gate", "checked", "failed", "verdict", "rule, or the first failure"},
                      {false, true, true, false, false});
  for (const Gate& gate : report.gates) {
    const char* verdict = gate.failed > 0 ? "FAILED" : gate.checked == 0 ? "not checked" : "passed";
    std::string words = gate.failed > 0 ? gate.first_failure : gate.rule;
    std::replace(words.begin(), words.end(), '|', '/');
    table.add({gate.name, std::to_string(gate.checked), std::to_string(gate.failed), verdict, words});
  }
  return table.text();
}

Cells figure_cells(const std::string& name, const Summary& summary, double scale, int digits) {
  const auto shown = [&](double value) { return decimal(value * scale, digits); };
  return {name,
          shown(summary.median),
          summary.p95 ? shown(*summary.p95) : "-",
          shown(summary.mean),
          summary.stddev ? shown(*summary.stddev) : "-",
          shown(summary.min) + " … " + shown(summary.max)};
}

std::string totals_lines(const Totals& totals) {
  std::string text = join(totals.requests, " requests, ", totals.valid_requests, " of them valid: ");
  if (!totals.rtf) return text + "no figures\n";
  const StageSeconds& stages = totals.stages;
  const auto share = [&](double seconds) {
    return decimal(100.0 * seconds / totals.compute_seconds, 1) + " %";
  };
  text += decimal(totals.audio_seconds, 1) + " s of audio in " + decimal(totals.compute_seconds, 1) +
          " s, RTF " + decimal(totals.compute_seconds / totals.audio_seconds, 4) + " (" +
          decimal(totals.audio_seconds / totals.compute_seconds, 1) + "x real time)\n";
  text += "stages: prompt " + share(stages.prompt) + ", backbone " + share(stages.backbone) + ", tower " +
          share(stages.tower) + ", sampler " + share(stages.sampler) + ", codec " + share(stages.codec) +
          "\n\n";
  MarkdownTable table({"over the requests", "median", "p95", "mean", "stddev", "min … max"},
                      {false, true, true, true, true, true});
  table.add(figure_cells("RTF", *totals.rtf, 1, 4));
  table.add(figure_cells("first audio ms", *totals.first_audio, 1e3, 2));
  return text + table.text();
}

std::string reasons_lines(const Report& report) {
  std::string text;
  for (const Row& row : report.rows) {
    if (row.valid()) continue;
    for (const std::string& reason : row.reasons) text += "INVALID " + row.item.id + ": " + reason + "\n";
  }
  return text.empty() ? text : "\n" + text;
}

std::string remarks_lines(const Report& report) {
  std::string text;
  for (const std::string& remark : report.remarks) text += "note: " + remark + "\n";
  return text.empty() ? text : "\n" + text;
}

}  // namespace

std::string table_text(const Report& report) {
  return rows_table(report) + reasons_lines(report) + "\n" + totals_lines(report.totals) +
         remarks_lines(report) + "\n" + gates_table(report) + "\n" + closing_text(report.gates) + "\n";
}

std::string markdown_text(const Report& report) {
  std::string text = "# drama3-bench\n\n**" + closing_text(report.gates) + "**\n\n## Figures\n\n" +
                     rows_table(report) + reasons_lines(report) + "\n" + totals_lines(report.totals) +
                     remarks_lines(report) + "\n## Gates\n\n" + gates_table(report) +
                     "\n## Circumstances\n\n";
  for (const Fact& fact : report.facts) text += "- " + fact.name + ": " + fact.value + "\n";
  text += "\n## What the figures mean\n\n";
  for (const std::string& rule : report.rules) text += "- " + rule + "\n";
  return text;
}

}  // namespace drama3::bench
