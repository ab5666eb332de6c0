// drama3-say: reads the command line and the text, lets the engine speak, writes audio and reports.
#include "apps/say.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "apps/model_folder.h"
#include "apps/progress.h"
#include "apps/say_options.h"
#include "apps/say_report.h"
#include "apps/say_text.h"
#include "apps/tool.h"
#include "lib/base/sha256.h"

namespace drama3 {
namespace {

// Audio on its way from the engine to the output, which is opened when the first samples come, so that a
// refused text leaves no header on a pipe.
class SpeechSpool {
 public:
  SpeechSpool(const OutputTarget& target, AudioFormat format, int64_t sample_rate)
      : target_(target), format_(format), sample_rate_(static_cast<int>(sample_rate)) {}

  void take(std::span<const float> samples) {
    if (!writer_) writer_ = open_audio_writer(target_, format_, sample_rate_);
    converted_.resize(samples.size());
    convert_samples(converted_, samples, level_);
    hash_.update(std::as_bytes(std::span(converted_)));
    writer_->write(converted_);
  }
  void finish() {
    if (!writer_) fail("speech: expected some audio, got none; try another --seed");
    writer_->finish();
  }
  const LevelMeter& level() const { return level_; }
  std::string sha256() { return hash_.hex(); }

 private:
  OutputTarget target_;
  AudioFormat format_;
  int sample_rate_;
  std::unique_ptr<AudioWriter> writer_;
  std::vector<int16_t> converted_;
  LevelMeter level_;
  Sha256 hash_;
};

uint64_t chosen_seed(const SayOptions& options) {
  if (options.seed) return *options.seed;
  std::random_device random;
  return static_cast<uint32_t>(random());
}

int list(const SayOptions& options) {
  const std::vector<DeviceInfo> devices = list_devices();
  if (!options.json) {
    write_stdout(device_lines(devices));
  } else if (*options.json == "-") {
    write_stdout(json_devices(devices));
  } else {
    OutputFile file(check_output(*options.json));
    file.write(json_devices(devices));
    file.commit();
  }
  return kExitDone;
}

int dump_tokens(const std::string& model, const std::string& text) {
  std::string lines;
  for (const std::vector<int32_t>& piece : prompt_tokens(model, text)) {
    std::string line;
    for (int32_t id : piece) line += (line.empty() ? "" : " ") + std::to_string(id);
    lines += line + "\n";
  }
  write_stdout(lines);
  return kExitDone;
}

SpeechRequest request_for(const SayOptions& options, const std::string& text, const Engine& engine) {
  SpeechRequest request;
  request.text = text;
  request.sampling = engine.default_sampling();
  if (options.temperature) request.sampling.temperature = *options.temperature;
  if (options.top_p) request.sampling.top_p = *options.top_p;
  if (options.top_k) request.sampling.top_k = *options.top_k;
  request.seed = chosen_seed(options);
  request.max_frames = options.max_frames;
  return request;
}

void describe_engine(const EngineInfo& info, const Messages& messages) {
  if (!info.device_reason.empty()) messages.note("device " + info.device + ": " + info.device_reason);
  messages.detail(join("model ", info.model, ": ", info.checkpoint_bytes, " bytes, ", info.max_rows,
                       " rows, ", info.sample_rate, " Hz, ", info.samples_per_frame, " samples a frame"));
  messages.detail(
      join("device ", info.device, ": ", info.device_name, ", ", info.cpu_path, " x", info.threads));
}

// The work between an open engine and a written output.
SayReport speak(Engine& engine, const SpeechRequest& request, SpeechSpool& spool, const Messages& messages) {
  const bool terminal = ::isatty(STDERR_FILENO) == 1 && messages.verbosity() != Verbosity::kQuiet;
  ProgressBar bar(terminal);
  const EngineInfo& info = engine.info();
  SayReport report;
  report.speech = engine.speak(request, [&](const SpeechEvent& event) {
    spool.take(event.samples);
    const double share = (static_cast<double>(event.piece) + event.piece_progress) /
                         static_cast<double>(std::max<size_t>(event.pieces, 1));
    bar.update(share, static_cast<double>(event.frames * info.samples_per_frame) /
                          static_cast<double>(info.sample_rate));
    return true;
  });
  report.engine = info;
  report.seed = request.seed;
  report.level = spool.level();
  return report;
}

void warn(const SayReport& report, Messages& messages) {
  for (const std::string& remark : report.speech.remarks) messages.note(remark);
  if (report.level.clipped > 0) {
    messages.warning(join("level: ", report.level.clipped, " of ", report.level.samples,
                          " samples were beyond full scale and are clipped"));
  }
  if (report.speech.finish == Finish::kLength) {
    messages.warning(join("limit: the audio was cut (truncated) after ", report.speech.frames,
                          " frames, before the text ended; raise --max-frames or shorten the text"));
  }
}

// The JSON report: a file of it is whole before the audio is in place and then only moves into its own, so
// that both are there or neither; a pipe or device is opened after the audio's, as its reader may wait for
// that.
class JsonSpool {
 public:
  JsonSpool(const OutputTarget& audio, const OutputTarget& target, std::string document)
      : target_(target),
        document_(std::move(document)),
        beside_audio_(target.kind == OutputKind::kStandardOutput &&
                      audio.kind == OutputKind::kStandardOutput) {
    if (target.kind != OutputKind::kReplaced) return;
    file_.emplace(target);
    file_->write(document_);
    file_->settle();
  }

  void finish() {
    if (file_) return file_->commit();
    if (beside_audio_) return write_stderr(document_);
    OutputFile direct(target_);
    direct.write(document_);
    direct.commit();
  }

 private:
  OutputTarget target_;
  std::string document_;
  bool beside_audio_;  // standard output has the audio: the report goes to standard error
  std::optional<OutputFile> file_;
};

void print_stages(const StageSeconds& stages, const Messages& messages) {
  messages.detail("stages: prompt " + decimal(stages.prompt, 3) + " s, backbone " +
                  decimal(stages.backbone, 3) + " s, tower " + decimal(stages.tower, 3) + " s, sampler " +
                  decimal(stages.sampler, 3) + " s, codec " + decimal(stages.codec, 3) + " s");
}

int say(const CommandLine& command, Messages& messages) {
  const SayOptions options = read_say_options(command, ::isatty(STDIN_FILENO) == 1);
  if (options.list_devices) return list(options);
  const std::string text = read_say_text(options, messages);
  checked_text(text);
  if (options.dump_tokens) return dump_tokens(find_model(options.model, messages), text);
  const OutputTarget target = check_output(*options.output);
  const OutputTarget json_target = check_output(options.json.value_or("-"));
  const AudioFormat format = choose_format(options, target);
  const std::string model = find_model(options.model, messages);

  if (options.verify) print_digests(model, messages);
  const std::unique_ptr<Engine> engine = Engine::open(
      {.model = model, .device = options.device, .threads = options.threads, .verify = options.verify});
  describe_engine(engine->info(), messages);
  const SpeechRequest request = request_for(options, text, *engine);
  SpeechSpool spool(target, format, engine->info().sample_rate);
  SayReport report = speak(*engine, request, spool, messages);

  report.output = *options.output;
  report.format = format;
  report.sha256 = spool.sha256();
  warn(report, messages);
  report.warnings = messages.warnings();
  print_stages(report.speech.stages, messages);
  const std::string closing = messages.spelled_line(closing_line(report));
  std::optional<JsonSpool> json;
  if (options.json) json.emplace(target, json_target, json_report(report));

  // Once the audio is in place, nothing allocates and no file is written: whoever is told of a failure finds
  // the old files.
  spool.finish();
  if (json) json->finish();
  write_stderr(closing);
  return report.speech.finish == Finish::kLength ? kExitCutAtLimit : kExitDone;
}

}  // namespace

int say_main(int argc, char** argv) { return run_tool(Tool::kSay, argc, argv, say); }

}  // namespace drama3
