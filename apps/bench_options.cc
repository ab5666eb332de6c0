// drama3-bench's command line, checked.
#include "apps/bench_options.h"

#include <cfloat>

namespace drama3::bench {
namespace {

ReportFile read_report(const std::string& path) {
  const bool html = path.ends_with(".html");
  if (!html && !path.ends_with(".md")) {
    usage_error("--report: expected a name ending in .html or .md, got ", in_quotes(path));
  }
  return {.format = html ? ReportFormat::kHtml : ReportFormat::kMarkdown, .target = check_output(path)};
}

// The corpus file: the value of --corpus, or the one argument after a bare --corpus.
std::string read_corpus_path(const CommandLine& command) {
  const std::vector<std::string>& arguments = command.positionals();
  if (!command.has("corpus")) {
    usage_error("--corpus: expected it, got ", arguments.empty() ? "nothing" : in_quotes(arguments[0]),
                "; write drama3-bench --corpus");
  }
  const std::string& value = command.value("corpus");
  if (arguments.size() > (value.empty() ? 1u : 0u)) {
    usage_error("arguments: expected none beside the corpus, got ", in_quotes(arguments.back()));
  }
  return arguments.empty() ? value : arguments[0];
}

void read_numbers(const CommandLine& command, BenchOptions* options) {
  if (const auto threads = setting(command, "threads")) {
    options->threads = static_cast<int>(parse_whole(*threads, {.least = 1, .most = 1024}));
  }
  if (const auto passes = setting(command, "passes")) {
    options->passes = static_cast<int>(parse_whole(*passes, {.least = 1, .most = 100}));
  }
  if (const auto warmup = setting(command, "warmup")) {
    options->warmup = static_cast<int>(parse_whole(*warmup, {.most = 100}));
  }
  if (const auto ceiling = setting(command, "max-rtf")) {
    options->max_rtf = parse_real(*ceiling, {.least_included = false, .most = DBL_MAX, .words = "above 0"});
  }
}

}  // namespace

BenchOptions read_bench_options(const CommandLine& command) {
  BenchOptions options;
  options.corpus = read_corpus_path(command);
  options.model = setting(command, "model");
  if (const auto device = setting(command, "device")) options.device = parse_device(*device, false);
  read_numbers(command, &options);
  if (command.has("filter")) options.filter = command.value("filter");
  if (command.has("baseline")) options.baseline = command.value("baseline");
  options.update_baseline = command.has("update-baseline");
  if (command.has("json")) options.json = check_output(command.value("json"));
  for (const std::string& path : command.values("report")) options.reports.push_back(read_report(path));
  if (command.has("show")) options.show = command.value("show");
  if (command.has("save")) options.save = command.value("save");
  return options;
}

}  // namespace drama3::bench
