// drama3-bench: reads the command line and the corpus, runs every rank's share, judges and reports.
#include "apps/bench.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "apps/bench_exchange.h"
#include "apps/bench_options.h"
#include "apps/bench_ranks.h"
#include "apps/bench_report.h"
#include "apps/model_folder.h"
#include "apps/progress.h"
#include "apps/tool.h"

namespace drama3 {
namespace bench {
namespace {

struct Call {
  const CommandLine& command;
  Messages& messages;
  Ranks& ranks;
  std::string command_line;
};

Plan make_plan(const BenchOptions& options, const std::string& corpus, const Ranks& ranks) {
  Plan plan{.items = filter_items(read_corpus(corpus), options.filter),
            .passes = options.passes,
            .warmup = options.warmup,
            .ranks = ranks.size(),
            .save_folder = options.save,
            .show_patterns = options.show};
  if (static_cast<size_t>(ranks.size()) > plan.items.size()) {
    fail("mpirun: expected at most one process an item, got ", ranks.size(), " for ", plan.items.size());
  }
  if (!options.save.empty()) {
    std::error_code problem;
    std::filesystem::create_directories(options.save, problem);
    if (problem) fail("--save: expected a folder, got ", options.save, ": ", problem.message());
  }
  return plan;
}

void report_request(const Call& call, const CorpusItem& item, const RequestRecord& request,
                    const EngineInfo& engine) {
  const std::string where = call.ranks.size() > 1 ? join("rank ", request.rank, " ") : "";
  if (!request.error.empty()) {
    call.messages.line(where + join("pass ", request.pass, " ", item.id, ": error: ", request.error));
    return;
  }
  call.messages.line(where + join("pass ", request.pass, " ", item.id, ": ") +
                     decimal(audio_seconds(request, engine), 2) + " s audio in " +
                     decimal(request.compute_seconds, 2) + " s, " + finish_name(request.finish));
}

// This rank's record; an Error becomes part of it, so that the other ranks are not left waiting.
RankRecord run_rank(const Call& call, const BenchOptions& options, const Plan& plan) {
  RankRecord record{.rank = call.ranks.rank()};
  try {
    const std::string model = find_model(options.model, call.messages);
    const std::unique_ptr<Engine> engine = Engine::open(
        engine_of_rank(call.ranks, {.model = model, .device = options.device, .threads = options.threads}));
    const EngineInfo& info = engine->info();
    if (!info.device_reason.empty()) call.messages.note("device " + info.device + ": " + info.device_reason);
    call.messages.detail(join("rank ", call.ranks.rank(), " of ", call.ranks.size(), ": process ", ::getpid(),
                              ", ", info.device, " x", info.threads));
    record = run_share(*engine, plan, call.ranks.rank(), [&](const auto& item, const auto& request) {
      report_request(call, item, request, info);
    });
    record.driver = driver_of(info);
  } catch (const Error& error) {
    record.error = error.what();
  }
  return record;
}

// The baseline to judge by: the named file, which must exist, or the one of this backend and checkpoint.
std::optional<Baseline> find_baseline(const BenchOptions& options, const std::string& path) {
  std::optional<Baseline> baseline = read_baseline(path);
  if (!baseline && options.baseline && !options.update_baseline) {
    fail("--baseline: expected a file, got nothing at ", path, "; record one with --update-baseline");
  }
  return baseline;
}

// Records the run; refused when a gate failed, since a wrong baseline would pass for a right one.
void update_baseline(const std::string& path, const Plan& plan, const std::vector<RankRecord>& ranks,
                     const Verdict& verdict, Messages& messages) {
  if (verdict.failed_gates() > 0) {
    messages.warning("baseline: expected every other gate to pass, got failures; " + path + " is as it was");
    return;
  }
  Baseline baseline{.path = path};
  const std::string backend = backend_class(ranks.front().engine.device);
  const std::optional<Baseline> before = read_baseline(path);
  if (before && before->backend == backend && before->checkpoint == ranks.front().checkpoint_hash) {
    baseline = *before;
  }
  baseline.backend = backend;
  baseline.checkpoint = ranks.front().checkpoint_hash;
  write_baseline(baseline, plan.items, merge_requests(ranks));
  messages.note("baseline: recorded in " + path + "; say why in the commit");
}

void write_target(const OutputTarget& target, const std::string& text) {
  OutputFile file(target);
  file.write(text);
  file.commit();
}

void print_report(const BenchOptions& options, const Report& report, const Messages& messages) {
  for (const Fact& fact : report.facts) messages.line(fact.name + ": " + fact.value);
  for (const std::string& rule : report.rules) messages.line("rule: " + rule);
  if (options.json) write_target(*options.json, json_text(report));
  if (!options.json || options.json->kind != OutputKind::kStandardOutput) write_stdout(table_text(report));
  for (const ReportFile& file : options.reports) {
    write_target(file.target, file.format == ReportFormat::kHtml ? html_text(report) : markdown_text(report));
  }
}

int run(const Call& call) {
  const BenchOptions options = read_bench_options(call.command);
  const std::vector<Fact> machine = machine_facts();
  const std::string corpus = options.corpus.empty() ? find_corpus() : options.corpus;
  const Plan plan = make_plan(options, corpus, call.ranks);
  const std::vector<std::string> texts = call.ranks.gather(record_text(run_rank(call, options, plan)));
  if (call.ranks.rank() != 0) return kExitDone;  // rank 0 tells the outcome

  std::vector<RankRecord> ranks;
  for (const std::string& text : texts) ranks.push_back(record_of_text(text));
  check_ranks_agree(ranks);
  const RankRecord& first = ranks.front();
  const std::string path =
      options.baseline ? *options.baseline
                       : baseline_path(corpus, backend_class(first.engine.device), first.checkpoint_hash);
  Judgement judgement{.max_rtf = options.max_rtf};
  if (!options.update_baseline) judgement.baseline = find_baseline(options, path);
  const Verdict verdict = judge(plan, ranks, judgement);
  Report report = make_report(plan, ranks, verdict);
  if (!judgement.baseline && !options.update_baseline) {
    report.remarks.push_back("no baseline at " + path +
                             ", so none was compared; --update-baseline records it");
  }
  report.facts = machine;
  for (const Fact& fact : run_facts(call.command_line, corpus, ranks)) report.facts.push_back(fact);
  report.rules = rules_of(plan);
  print_report(options, report, call.messages);
  if (options.update_baseline) update_baseline(path, plan, ranks, verdict, call.messages);
  return verdict.failed_gates() > 0 ? kExitBarMissed : kExitDone;
}

}  // namespace
}  // namespace bench

int bench_main(int argc, char** argv) {
  return run_tool(Tool::kBench, argc, argv, [&](const CommandLine& command, Messages& messages) {
    const std::unique_ptr<bench::Ranks> ranks = bench::open_ranks();
    return bench::run({.command = command,
                       .messages = messages,
                       .ranks = *ranks,
                       .command_line = bench::command_line_text(argc, argv)});
  });
}

}  // namespace drama3
