// drama3-say's command line, checked.
#include "apps/say_options.h"

#include <cfloat>

namespace drama3 {
namespace {

constexpr std::string_view kOutputHint = "write -o out.wav, or -o - | aplay";

// Exactly one source of words.
void read_source(const CommandLine& command, bool stdin_is_terminal, SayOptions* options) {
  const std::vector<std::string>& texts = command.positionals();
  if (texts.size() > 1) {
    usage_error("TEXT: expected one, got ", texts.size(), " (", in_quotes(texts[0]), ", ",
                in_quotes(texts[1]), "); put the text in quotes");
  }
  if (command.has("file")) {
    if (!texts.empty()) {
      usage_error("TEXT: expected none together with --file, got ", in_quotes(texts[0]),
                  "; give one of the two");
    }
    options->text = command.value("file");
    options->source = options->text == "-" ? TextSource::kStandardInput : TextSource::kFile;
  } else if (!texts.empty() && texts[0] != "-") {
    options->text = texts[0];
  } else if (texts.empty() && stdin_is_terminal) {
    usage_error("TEXT: expected the words to speak, got none; write drama3-say \"Hello, world!\" -o out.wav");
  } else {
    options->source = TextSource::kStandardInput;
  }
}

void read_numbers(const CommandLine& command, SayOptions* options) {
  if (const auto threads = setting(command, "threads")) {
    options->threads = static_cast<int>(parse_whole(*threads, {.least = 1, .most = 1024}));
  }
  if (const auto seed = setting(command, "seed")) {
    options->seed = parse_whole(*seed, {.remedy = "leave --seed out for a seed that is drawn and reported"});
  }
  if (const auto temperature = setting(command, "temperature")) {
    options->temperature = static_cast<float>(
        parse_real(*temperature, {.most = FLT_MAX, .words = "of at least 0 (0 takes the likeliest)"}));
  }
  if (const auto top_p = setting(command, "top-p")) {
    options->top_p = static_cast<float>(
        parse_real(*top_p, {.least_included = false, .most = 1, .words = "above 0 and at most 1"}));
  }
  if (const auto top_k = setting(command, "top-k")) {
    options->top_k = static_cast<int32_t>(parse_whole(*top_k, {.most = INT32_MAX, .remedy = "0 keeps all"}));
  }
  if (const auto frames = setting(command, "max-frames")) {
    options->max_frames = static_cast<int64_t>(
        parse_whole(*frames, {.least = 1, .most = INT32_MAX, .remedy = "leave it out for no cap"}));
  }
}

void check_outputs(const SayOptions& options) {
  if (options.dump_tokens && (options.output || options.json)) {
    usage_error("--dump-tokens: expected alone, got ", options.output ? "--output" : "--json",
                " with it; the ids go to standard output");
  }
  if (options.verify && (options.dump_tokens || options.list_devices)) {
    usage_error("--verify: expected with a text to speak, got ",
                options.dump_tokens ? "--dump-tokens" : "--list-devices", ", which reads no weight");
  }
  if (!options.dump_tokens && !options.list_devices && !options.output) {
    usage_error("--output: expected an audio file to write, got none; ", kOutputHint);
  }
  if (options.output && options.output->empty()) {
    usage_error("--output: expected the name of a file, got ''; ", kOutputHint);
  }
  if (options.json && options.json->empty()) usage_error("--json: expected the name of a file or -, got ''");
  if (options.json && options.output && *options.json != "-" && *options.json == *options.output) {
    usage_error("--json: expected another file than --output, got ", in_quotes(*options.json), " for both");
  }
}

}  // namespace

SayOptions read_say_options(const CommandLine& command, bool stdin_is_terminal) {
  SayOptions options;
  options.dump_tokens = command.has("dump-tokens");
  options.list_devices = command.has("list-devices");
  options.verify = command.has("verify");
  if (command.has("output")) options.output = command.value("output");
  if (command.has("json")) options.json = command.value("json");
  if (const auto format = setting(command, "format")) {
    const std::string name = parse_choice(*format, "wav flac pcm");
    options.format = name == "wav"    ? AudioFormat::kWav
                     : name == "flac" ? AudioFormat::kFlac
                                      : AudioFormat::kPcm;
  }
  options.model = setting(command, "model");
  if (const auto device = setting(command, "device")) options.device = parse_device(*device, false);
  read_numbers(command, &options);
  if (!options.list_devices) read_source(command, stdin_is_terminal, &options);
  check_outputs(options);
  return options;
}

AudioFormat choose_format(const SayOptions& options, const OutputTarget& target) {
  if (options.format) return *options.format;
  if (target.kind != OutputKind::kReplaced) return AudioFormat::kWav;
  const std::optional<AudioFormat> format = format_of_path(target.shown);
  if (!format) {
    usage_error("--output: expected a name ending in .wav, .flac, .pcm or .raw, got ",
                in_quotes(target.shown), "; or give --format wav, flac or pcm");
  }
  return *format;
}

}  // namespace drama3
