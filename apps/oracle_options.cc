// drama3-oracle's command line, checked.
#include "apps/oracle_options.h"

namespace drama3 {

OracleOptions read_oracle_options(const CommandLine& command) {
  OracleOptions options;
  if (!command.positionals().empty()) {
    usage_error("expected options only, got ", in_quotes(command.positionals().front()));
  }
  if (!command.has("reference")) {
    usage_error(
        "--reference: expected a folder of reference data, got none; write --reference tests/data/golden");
  }
  options.reference = command.value("reference");
  options.model = setting(command, "model");
  if (const auto stage = setting(command, "stage")) {
    options.stage = parse_choice(*stage, "tokenizer sampler backbone tower codec all");
  }
  if (const auto device = setting(command, "device")) options.device = parse_device(*device, true);
  if (const auto threads = setting(command, "threads")) {
    options.threads = static_cast<int>(parse_whole(*threads, {.least = 1, .most = 1024}));
  }
  if (command.has("op")) options.op = command.value("op");
  if (command.has("dump")) options.dump = command.value("dump");
  if (command.has("json")) options.json = command.value("json");
  options.quantize_activations = !command.has("no-activation-quantization");
  options.force_routing = command.has("force-routing");
  if (options.op && command.has("stage")) {
    usage_error("--op: expected alone, got --stage with it; an op is replayed without the stages");
  }
  if (options.op && options.dump) {
    usage_error("--op: expected alone, got --dump with it; --op reads what --dump wrote, by --reference");
  }
  if (options.dump && options.dump->empty()) usage_error("--dump: expected the name of a folder, got ''");
  if (options.json && options.json->empty()) usage_error("--json: expected the name of a file or -, got ''");
  return options;
}

}  // namespace drama3
