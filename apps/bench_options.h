// drama3-bench's command line as checked values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/command_line.h"
#include "apps/option_values.h"
#include "lib/audio/output_file.h"

namespace drama3::bench {

enum class ReportFormat { kHtml, kMarkdown };

// One --report, its target checked.
struct ReportFile {
  ReportFormat format = ReportFormat::kHtml;
  OutputTarget target;
};

// Settings that are absent here have their default in the help.
struct BenchOptions {
  std::string corpus;  // file, empty for the program's own
  std::optional<Setting> model;
  std::string device = "auto";
  int threads = 0;  // 0: the default
  int passes = 2;
  int warmup = 1;
  std::string filter;
  std::optional<std::string> baseline;
  bool update_baseline = false;
  std::optional<OutputTarget> json;
  std::vector<ReportFile> reports;
  std::string show;
  std::string save;  // folder, empty for none
  std::optional<double> max_rtf;
};

// Checks every value and that the outputs can be written; UsageError names the option and the range.
BenchOptions read_bench_options(const CommandLine& command);

}  // namespace drama3::bench
