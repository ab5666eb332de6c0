// The HTML report: one page without scripts, fonts or anything else from elsewhere.
#include <algorithm>

#include "apps/bench_plots.h"
#include "apps/bench_report.h"
#include "apps/progress.h"
#include "lib/base/error.h"

namespace drama3::bench {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #1c1f24; --soft: #5d6673; --line: #d5dae1; --paper: #ffffff;
  --bad: #b3261e; --good: #1b6e3a; --wave: #2a6fb0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #9aa4b2; --line: #343a44;
  --paper: #16191e; --bad: #ff8a80; --good: #7fd6a0; --wave: #7ab8f0; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1040px;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.lead { font-size: 1.1rem; margin-top: .3rem; } .soft { color: var(--soft); }
.bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code { font: .85em ui-monospace, monospace; overflow-wrap: anywhere; }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.2rem 0; }
.tile { border: 1px solid var(--line); border-radius: 8px; padding: .6rem 1rem; min-width: 130px; }
.tile b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; display: block; } svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
.grid { stroke: var(--line); stroke-width: 1; } .mark { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 5 4; }
.wave { fill: var(--wave); }
)";

std::string cell(const std::string& text, bool number = false) {
  return (number ? "<td class=\"n\">" : "<td>") + text + "</td>";
}

std::string tile(const std::string& figure, const std::string& words) {
  return "<div class=\"tile\"><b>" + figure + "</b><span class=\"soft\">" + words + "</span></div>";
}

std::string tiles(const Totals& totals) {
  if (!totals.rtf) return "<p class=\"bad\">No valid figures.</p>";
  const double rtf = totals.compute_seconds / totals.audio_seconds;
  const std::string valid =
      totals.valid_requests == totals.requests ? "requests" : join("of ", totals.requests, " requests valid");
  return "<div class=\"tiles\">" + tile(std::to_string(totals.valid_requests), valid) +
         tile(decimal(rtf, 4), "RTF, all audio") + tile(decimal(1 / rtf, 1) + "x", "real time") +
         tile(decimal(totals.rtf->median, 4), "median RTF") +
         tile(totals.rtf->p95 ? decimal(*totals.rtf->p95, 4) : "-", "p95 RTF") +
         tile(decimal(totals.first_audio->median * 1e3, 1) + " ms", "median first audio") +
         tile(decimal(totals.audio_seconds, 0) + " s", "of audio") + "</div>";
}

std::string with_spread(const Summary& summary, double scale, int digits) {
  std::string text = decimal(summary.median * scale, digits);
  if (summary.stddev) text += " ± " + decimal(*summary.stddev * scale, digits);
  return text;
}

std::string rows_table(const Report& report) {
  std::string html =
      "<div class=\"scroll\"><table><tr><th>request</th><th class=\"n\">audio s</th><th class=\"n\">RTF</th>"
      "<th class=\"n\">min … max</th><th class=\"n\">first audio ms</th><th class=\"n\">x real time</th>"
      "<th>end</th><th>sha256</th></tr>";
  for (const Row& row : report.rows) {
    html += "<tr title=\"" + escaped(row.item.text) + "\">" + cell(row.item.id);
    if (!row.valid()) {
      const std::string reason = row.reasons.empty() ? "no reply" : row.reasons.front();
      html += "<td colspan=\"7\"><span class=\"bad\">INVALID</span> " + escaped(reason) + "</td></tr>";
      continue;
    }
    const RequestRecord& first = row.requests.front();
    html += cell(decimal(row.audio_seconds, 2), true) + cell(with_spread(*row.rtf, 1, 4), true) +
            cell(decimal(row.rtf->min, 4) + " … " + decimal(row.rtf->max, 4), true) +
            cell(with_spread(*row.first_audio, 1e3, 2), true) + cell(decimal(1 / row.rtf->median, 1), true) +
            cell(finish_name(first.finish)) + cell("<code>" + first.sha256.substr(0, 12) + "</code>") +
            "</tr>";
  }
  return html + "</table></div>";
}

std::string gates_table(const Report& report) {
  std::string html =
      "<div class=\"scroll\"><table><tr><th>gate</th><th class=\"n\">checked</th><th class=\"n\">failed</th>"
      "<th>verdict</th><th>rule</th></tr>";
  for (const Gate& gate : report.gates) {
    const char* verdict = gate.failed > 0     ? "<span class=\"bad\">FAILED</span>"
                          : gate.checked == 0 ? "<span class=\"soft\">not checked</span>"
                                              : "<span class=\"good\">passed</span>";
    html += "<tr>" + cell(gate.name) + cell(std::to_string(gate.checked), true) +
            cell(std::to_string(gate.failed), true) + cell(verdict) + "<td>" + escaped(gate.rule);
    if (gate.failed > 0) html += "<br><span class=\"bad\">first: " + escaped(gate.first_failure) + "</span>";
    html += "</td></tr>";
  }
  return html + "</table></div>";
}

std::string facts_table(const Report& report) {
  std::string html = "<table>";
  for (const Fact& fact : report.facts) {
    html += "<tr>" + cell(escaped(fact.name)) + cell("<code>" + escaped(fact.value) + "</code>") + "</tr>";
  }
  return html + "</table>";
}

std::string list(const std::vector<std::string>& sentences) {
  std::string html = "<ul>";
  for (const std::string& sentence : sentences) html += "<li>" + escaped(sentence) + "</li>";
  return html + "</ul>";
}

std::string section(const std::string& title, const std::string& body) {
  return "<h2>" + title + "</h2>\n" + body + "\n";
}

}  // namespace

std::string html_text(const Report& report) {
  const bool failed =
      std::any_of(report.gates.begin(), report.gates.end(), [](const Gate& gate) { return gate.failed > 0; });
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\"><title>drama3-bench</title><style>" +
      std::string(kStyle) + "</style></head><body>\n<h1>drama3-bench</h1>\n";
  html += std::string("<p class=\"lead\">Gates: <span class=\"") + (failed ? "bad" : "good") + "\">" +
          closing_text(report.gates) + "</span></p>\n" + tiles(report.totals);
  if (!report.remarks.empty()) html += list(report.remarks);
  html += section("Speed against length", rtf_plot(report));
  html += section("Where the time goes", stage_plot(report));
  html += section("First audio", first_audio_plot(report));
  html += section("Gates", gates_table(report));
  html += section("Requests", rows_table(report));
  for (const SoundPicture& picture : report.pictures) {
    html += section("Sound of " + escaped(picture.id), sound_plot(picture));
  }
  html += section("What the figures mean", list(report.rules));
  html += section("Circumstances", facts_table(report));
  return html + "</body></html>\n";
}

}  // namespace drama3::bench
