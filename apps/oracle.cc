// drama3-oracle: opens model and reference, replays the stages asked for, prints and judges.
#include "apps/oracle.h"

#include <array>

#include "apps/model_folder.h"
#include "apps/oracle_op.h"
#include "apps/oracle_options.h"
#include "apps/oracle_report.h"
#include "apps/tool.h"
#include "lib/audio/output_file.h"
#include "lib/engine/backend.h"

namespace drama3 {
namespace {

struct Stage {
  std::string_view name;
  void (*replay)(Replay&);
};
constexpr std::array kStages{Stage{"tokenizer", replay_tokenizer}, Stage{"sampler", replay_sampler},
                             Stage{"backbone", replay_backbone}, Stage{"tower", replay_tower},
                             Stage{"codec", replay_codec}};

void run_stages(Replay& replay, const OracleOptions& options, const Messages& messages) {
  for (const Stage& stage : kStages) {
    if (options.stage != "all" && options.stage != stage.name) continue;
    messages.detail(join("stage ", stage.name));
    replay.stage = stage.name;
    stage.replay(replay);
  }
  if (replay.comparisons.empty()) {
    fail(options.reference, ": expected reference data of stage ", options.stage, ", got ",
         replay.remarks.empty() ? "none" : replay.remarks.front());
  }
}

OracleReport report_of(const Replay& replay, const OracleOptions& options, const Backend& backend) {
  OracleReport report;
  report.reference = options.reference;
  report.device = backend.device.id;
  report.device_name = backend.device.name;
  report.threads = backend.threads;
  report.half_activations = replay.half_activations();
  report.half_codec = replay.half_codec();
  report.quantize_activations = options.quantize_activations;
  report.force_routing = options.force_routing;
  report.comparisons = replay.comparisons;
  report.remarks = replay.remarks;
  return report;
}

int oracle(const CommandLine& command, Messages& messages) {
  const OracleOptions options = read_oracle_options(command);
  const OutputTarget json_target = check_output(options.json.value_or("-"));
  Reference reference(options.reference);
  const std::string folder = find_model(options.model, messages);
  const Backend backend = open_backend(options.device, options.threads);
  messages.note(join("device ", backend.device.id, ": ", backend.device.name, " ", backend.cpu_path));
  const Model model(*backend.ops, folder, {.codec_parts = codec::Parts::kDecoderAndEncoder});

  Replay replay(
      *backend.ops, model, reference,
      {.quantize_activations = options.quantize_activations, .force_routing = options.force_routing});
  if (options.dump) replay.dump.enable();
  if (options.op) {
    replay_op(replay, *options.op);
  } else {
    run_stages(replay, options, messages);
  }
  record_ops(replay);
  if (options.dump) replay.dump.write(*options.dump, options.reference);
  for (const std::string& remark : replay.remarks) messages.note(remark);

  OracleReport report = report_of(replay, options, backend);
  report.model = folder;
  if (!options.json || *options.json != "-") write_stdout(oracle_table(report));
  if (options.json) {
    OutputFile file(json_target);
    file.write(json_oracle(report));
    file.commit();
  }
  return failed_count(report) > 0 ? kExitBarMissed : kExitDone;
}

}  // namespace

int oracle_main(int argc, char** argv) { return run_tool(Tool::kOracle, argc, argv, oracle); }

}  // namespace drama3
