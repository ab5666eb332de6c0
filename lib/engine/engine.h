// The public interface of the engine: open a checkpoint on a device, turn text into PCM; needs no other
// header.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace drama3 {

// One device that can run the model.
struct DeviceInfo {
  std::string id;                  // "cpu", "cuda:0", ...
  std::string name;                // marketing name
  std::string compute_capability;  // "9.0"; empty for the CPU
  uint64_t free_bytes = 0;         // of device memory; 0 for the CPU
  uint64_t total_bytes = 0;
  std::string driver;
  std::string pci_id;
  std::string uuid;
};

// "cpu" first, then every usable CUDA device in PCI order.
std::vector<DeviceInfo> list_devices();

// The instruction-set paths compiled into the CPU backend that this machine can run, best first ("avx512",
// ...).
std::vector<std::string> list_cpu_paths();

struct EngineOptions {
  std::string model;            // checkpoint folder in the published layout
  std::string device = "auto";  // auto | cpu | cuda | cuda:N | ref (the slow scalar definition)
  int threads = 0;              // CPU backend; 0 = physical cores within affinity mask and cgroup quota
  int64_t max_rows = 0;  // rows (prompt + frames) that the caches hold; 0 = 4096, less if the model has less
  bool verify = false;   // read every weight and refuse NaN and infinity
};

// How the samples of a request are drawn.
struct SamplingSettings {
  float temperature = 1.0f;  // >= 0; 0 = argmax
  float top_p = 0.9f;        // (0, 1]
  int32_t top_k = 0;         // >= 0; 0 = no limit
};

// When decoded audio is handed over: the first group alone, then groups of `next` frames. The samples do not
// depend on it.
struct ChunkPolicy {
  int64_t first = 1;
  int64_t next = 8;
};

enum class Finish {
  kStop,       // the model ended its speech
  kLength,     // cut at max_frames or at the budget of a piece
  kCancelled,  // the sink said so
};

// "stop", "length", "cancelled".
const char* finish_name(Finish finish);

struct SpeechRequest {
  std::string text;  // UTF-8 as the user gave it; cleaned and checked as lib/text says
  SamplingSettings sampling;
  uint64_t seed = 0;       // piece i of a long text draws with seed + i
  int64_t max_frames = 0;  // cap on all frames of the request; 0 = none
  ChunkPolicy chunks;
  std::stop_token stop;  // asked before every frame; a stopped request finishes as kCancelled
};

// Newly finished audio; samples of successive events joined are the whole output and never change afterwards.
struct SpeechEvent {
  std::span<const float> samples;  // mono, sample_rate, in (-1, 1)
  int64_t frames = 0;              // frames finished so far, all pieces
  size_t piece = 0;                // index of the piece that speaks
  size_t pieces = 0;               // how many there are
  double piece_progress = 0.0;     // share of the piece's expected frames, for a progress bar
};

// Returns false to cancel; called between frames on the caller's thread. It must not call the engine.
using SpeechSink = std::function<bool(const SpeechEvent&)>;

// One piece of a long text; the pieces' texts joined equal the request's cleaned text.
struct PieceResult {
  std::string text;
  int64_t text_tokens = 0;  // ids of the whole prompt
  int64_t frames = 0;
  Finish finish = Finish::kStop;
};

// Wall seconds that the engine's thread spent in each stage; on a CUDA device, where stages run beside one
// another, in enqueueing and waiting.
struct StageSeconds {
  double prompt = 0.0;
  double backbone = 0.0;
  double tower = 0.0;    // with its draws
  double sampler = 0.0;  // the semantic draw
  double codec = 0.0;
};

struct SpeechResult {
  std::vector<PieceResult> pieces;
  int64_t frames = 0;
  int64_t samples = 0;
  Finish finish = Finish::kStop;     // kLength as soon as one piece was cut
  double first_audio_seconds = 0.0;  // from the call to the first event
  double compute_seconds = 0.0;      // the whole call, less the time spent in the sink
  StageSeconds stages;
  std::vector<std::string> remarks;  // tags recognised, markup that is read aloud, ...
};

// What was opened.
struct EngineInfo {
  std::string model;   // folder
  std::string device;  // "cpu", "cuda:0", "ref"
  std::string device_name;
  std::string device_reason;  // why `auto` took it; empty for an explicit device
  std::string cpu_path;       // "avx512", "avx2", "scalar"; empty on other devices
  int threads = 0;            // 0 on other devices
  int64_t sample_rate = 0;
  int64_t samples_per_frame = 0;
  int64_t max_rows = 0;
  uint64_t checkpoint_bytes = 0;
  double load_seconds = 0.0;
};

// A loaded checkpoint on one device, speaking one request at a time; unless the device is
// named cpu or ref, by a thread of its own, so that any thread may call it. Throws Error (lib/base/error.h, a
// std::runtime_error) whose sentence names what was wrong; after an error the next request starts afresh.
class Engine {
 public:
  static std::unique_ptr<Engine> open(const EngineOptions& options);
  virtual ~Engine() = default;

  virtual const EngineInfo& info() const = 0;
  // generation_config.json of the checkpoint over the built-in defaults.
  virtual SamplingSettings default_sampling() const = 0;
  // SHA-256 over the checkpoint's files, hexadecimal; reads them all.
  virtual std::string checkpoint_hash() const = 0;
  // Speaks the text; `sink` may be empty. Checks text and limits before the first row is computed.
  virtual SpeechResult speak(const SpeechRequest& request, const SpeechSink& sink) = 0;
};

// Token ids of each piece's prompt, from the checkpoint's tokenizer alone (no weights are opened).
std::vector<std::vector<int32_t>> prompt_tokens(const std::string& model, const std::string& text);

// The text as lib/text cleans it, or Error: empty, nothing to speak, invalid UTF-8, NUL, a control token (the
// checks that need no checkpoint).
std::string checked_text(const std::string& text);

}  // namespace drama3
