// The engine behind the public interface: text to pieces, pieces to requests of one session.
#include "lib/engine/engine.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/engine/backend.h"
#include "lib/engine/codec_vocoder.h"
#include "lib/engine/model.h"
#include "lib/engine/model_generator.h"
#include "lib/engine/stage_timer.h"
#include "lib/engine/tokenizer_file.h"
#include "lib/engine/worker_engine.h"
#include "lib/text/limits.h"
#include "lib/text/marks.h"
#include "lib/text/prompt.h"
#include "lib/text/split.h"
#include "lib/text/utf8.h"

namespace drama3 {
namespace {

constexpr int64_t kFramesPerDecode = 8;  // of one codec call
constexpr int64_t kDefaultRows = 4096;   // rows that the caches hold

// The checkpoint's generation_config.json, or the built-in values.
GenerationConfig read_generation_config(const CheckpointFolder& folder) {
  if (!folder.has("generation_config.json")) return {};
  return parse_generation_config(JsonDocument::read(folder.file("generation_config.json"), kConfigLimits));
}

double tenths(double seconds) { return std::round(seconds * 10.0) / 10.0; }

class ModelEngine final : public Engine {
 public:
  explicit ModelEngine(const EngineOptions& options);

  const EngineInfo& info() const override { return info_; }
  SamplingSettings default_sampling() const override { return generation_.sampling; }
  std::string checkpoint_hash() const override { return model_->checkpoint.hash(); }
  SpeechResult speak(const SpeechRequest& request, const SpeechSink& sink) override;

 private:
  // One request of several pieces while it runs.
  struct Speaking {
    const SpeechRequest& request;
    const SpeechSink& sink;
    SpeechResult result = {};
    Stopwatch watch = {};
    double sink_seconds = 0.0;
  };
  void speak_piece(Speaking& speaking, const TextPiece& piece, size_t index, size_t count);
  bool report(Speaking& speaking, std::span<const float> samples, const SpeechEvent& event);

  Backend backend_;
  std::unique_ptr<Model> model_;
  GenerationConfig generation_;
  std::unique_ptr<ModelGenerator> generator_;
  std::unique_ptr<CodecVocoder> vocoder_;
  std::unique_ptr<Session> session_;
  std::vector<float> pcm_;  // of one piece
  EngineInfo info_;
};

ModelEngine::ModelEngine(const EngineOptions& options) {
  const StageTimer timer(info_.load_seconds);
  backend_ = open_backend(options.device, options.threads);
  model_ = std::make_unique<Model>(
      *backend_.ops, options.model,
      LoadOptions{.verify = options.verify,
                  .max_rows = options.max_rows > 0 ? options.max_rows : kDefaultRows});
  generation_ = read_generation_config(model_->checkpoint.folder());
  info_.model = options.model;
  info_.device = backend_.device.id;
  info_.device_name = backend_.device.name;
  info_.device_reason = backend_.reason;
  info_.cpu_path = backend_.cpu_path;
  info_.threads = backend_.threads;
  info_.sample_rate = codec::kSampleRate;
  info_.samples_per_frame = model_->codec.samples_per_frame;
  info_.max_rows =
      std::min(options.max_rows > 0 ? options.max_rows : kDefaultRows, model_->config.max_positions);
  info_.checkpoint_bytes = model_->checkpoint.file_bytes();

  generator_ = std::make_unique<ModelGenerator>(*backend_.ops, generator_parts(*model_), info_.max_rows);
  vocoder_ = std::make_unique<CodecVocoder>(
      backend_.ops->beside(), model_->codec,
      codec::Limits{.frames_per_call = kFramesPerDecode, .frames = generation_.piece_frames});
  session_ = std::make_unique<Session>(*generator_, *vocoder_, generation_.piece_frames);
}

SpeechResult ModelEngine::speak(const SpeechRequest& request, const SpeechSink& sink) {
  Speaking speaking{.request = request, .sink = sink};
  const std::string text = checked_text(request.text);
  if (const auto remark = markup_remark(text)) speaking.result.remarks.push_back(*remark);
  const std::vector<TextPiece> pieces = split_text(model_->tokenizer, text, generation_.piece_rows);
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (speaking.result.finish == Finish::kCancelled) break;
    if (request.max_frames > 0 && speaking.result.frames >= request.max_frames) {
      speaking.result.finish = Finish::kLength;
      speaking.result.pieces.push_back({.text = std::string(pieces[i].text), .finish = Finish::kLength});
      continue;
    }
    speak_piece(speaking, pieces[i], i, pieces.size());
  }
  speaking.result.samples = speaking.result.frames * info_.samples_per_frame;
  speaking.result.compute_seconds = speaking.watch.seconds() - speaking.sink_seconds;
  return std::move(speaking.result);
}

void ModelEngine::speak_piece(Speaking& speaking, const TextPiece& piece, size_t index, size_t count) {
  SpeechResult& result = speaking.result;
  result.pieces.push_back({.text = std::string(piece.text)});
  PieceResult& spoken = result.pieces.back();
  if (!piece.has_speech) return;

  SessionRequest request;
  if (count > 1) request.name = join("piece ", index + 1, " of ", count, ", ");
  request.prompt.ids = build_prompt(model_->tokenizer, piece.text, {}, piece.speaker);
  spoken.text_tokens = static_cast<int64_t>(request.prompt.ids.size());
  request.max_frames = std::min(generation_.piece_frames, info_.max_rows - spoken.text_tokens);
  if (speaking.request.max_frames > 0) {
    request.max_frames = std::min(request.max_frames, speaking.request.max_frames - result.frames);
  }
  check_rows_fit(spoken.text_tokens, std::max<int64_t>(request.max_frames, 1), info_.max_rows);
  const SamplingSettings& sampling = speaking.request.sampling;
  request.sampling = {.temperature = sampling.temperature,
                      .top_p = sampling.top_p,
                      .top_k = sampling.top_k,
                      .seed = speaking.request.seed + index};
  request.chunks = speaking.request.chunks;
  request.stop = speaking.request.stop;

  const auto samples_needed = static_cast<size_t>(request.max_frames * info_.samples_per_frame);
  if (pcm_.size() < samples_needed) pcm_.resize(samples_needed);
  const double seconds_per_frame =
      static_cast<double>(info_.samples_per_frame) / static_cast<double>(info_.sample_rate);
  const double expected = expected_seconds(piece.text);
  int64_t reported = 0;
  const SessionResult session = session_->run(request, pcm_, [&](int64_t frames) {
    const auto begin = static_cast<size_t>(reported * info_.samples_per_frame);
    const auto end = static_cast<size_t>(frames * info_.samples_per_frame);
    reported = frames;
    const double progress = std::min(1.0, static_cast<double>(frames) * seconds_per_frame / expected);
    return report(
        speaking, std::span(pcm_).subspan(begin, end - begin),
        {.frames = result.frames + frames, .piece = index, .pieces = count, .piece_progress = progress});
  });
  const double seconds = static_cast<double>(session.frames) * seconds_per_frame;
  if (session.finish == Finish::kStop && (session.frames == 0 || seconds < shortest_seconds(piece.text))) {
    fail("piece ", index + 1, " of ", count, ": expected about ", tenths(expected), " s of speech, got ",
         tenths(seconds), ": the model ended it at frame ", session.frames,
         "; try another seed or temperature");
  }
  spoken.frames = session.frames;
  spoken.finish = session.finish;
  result.frames += session.frames;
  if (session.finish != Finish::kStop) result.finish = session.finish;
  const StageSeconds& stages = generator_->stage_seconds();
  result.stages.prompt += stages.prompt;
  result.stages.backbone += stages.backbone;
  result.stages.tower += stages.tower;
  result.stages.sampler += stages.sampler;
  result.stages.codec += vocoder_->seconds();
}

bool ModelEngine::report(Speaking& speaking, std::span<const float> samples, const SpeechEvent& event) {
  check_mapped_files();
  if (speaking.result.first_audio_seconds == 0.0)
    speaking.result.first_audio_seconds = speaking.watch.seconds();
  if (!speaking.sink) return true;
  SpeechEvent full = event;
  full.samples = samples;
  const StageTimer timer(speaking.sink_seconds);
  return speaking.sink(full);
}

}  // namespace

const char* finish_name(Finish finish) {
  switch (finish) {
    case Finish::kStop:
      return "stop";
    case Finish::kLength:
      return "length";
    case Finish::kCancelled:
      return "cancelled";
  }
  return "";
}

std::unique_ptr<Engine> Engine::open(const EngineOptions& options) {
  const auto open = [&]() -> std::unique_ptr<Engine> { return std::make_unique<ModelEngine>(options); };
  const bool on_host = options.device == "cpu" || options.device == "ref";
  return on_host ? open() : open_on_worker(open);
}

std::vector<std::vector<int32_t>> prompt_tokens(const std::string& model, const std::string& text) {
  const CheckpointFolder folder(model, {"tokenizer.json"});
  const Tokenizer tokenizer = load_tokenizer(folder.file("tokenizer.json"));
  const std::string clean = checked_text(text);
  std::vector<std::vector<int32_t>> prompts;
  for (const TextPiece& piece : split_text(tokenizer, clean, read_generation_config(folder).piece_rows)) {
    if (piece.has_speech) prompts.push_back(build_prompt(tokenizer, piece.text, {}, piece.speaker));
  }
  return prompts;
}

std::string checked_text(const std::string& text) {
  std::string clean = clean_text(text, "text");
  check_speech_text(clean, "text");
  return clean;
}

}  // namespace drama3
