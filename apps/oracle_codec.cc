// The codec against the reference: every stage of decoding, the PCM of the greedy texts, and encoding.
#include <algorithm>
#include <map>

#include "apps/oracle_replay.h"
#include "lib/base/error.h"
#include "lib/codec/decode.h"
#include "lib/codec/encode.h"

namespace drama3 {
namespace {

constexpr const char* kFile = "codec.safetensors";
constexpr int64_t kFramesPerCall = 16;

using Stages = std::map<std::string, FloatTensor, std::less<>>;  // [time, channels]

codec::Observer keeper(Ops& ops, Stages& stages) {
  return [&ops, &stages](std::string_view stage, const View& rows) {
    append_rows(stages[std::string(stage)], downloaded_floats(ops, rows));
  };
}

// codes [frames, codebooks] through the decoder.
Stages decode(const Replay& replay, const IntTensor& codes) {
  Ops& ops = replay.ops;
  const codec::Weights& weights = replay.model.codec;
  if (codes.cols() != weights.codebooks()) {
    fail("codes: expected ", weights.codebooks(), " codebooks, got ", codes.cols());
  }
  Stages stages;
  codec::Decoder decoder(ops, weights, {.frames_per_call = kFramesPerCall, .frames = codes.rows()});
  decoder.observe(keeper(ops, stages));
  const Buffer rows = uploaded(ops, codes);
  const Buffer pcm = ops.allocate(ops.codec_type(), Shape{1, kFramesPerCall * weights.samples_per_frame});
  for (int64_t begin = 0; begin < codes.rows(); begin += kFramesPerCall) {
    const int64_t frames = std::min(kFramesPerCall, codes.rows() - begin);
    decoder.decode(pcm.view.cols_from(0, frames * weights.samples_per_frame),
                   rows.view.rows_from(begin, frames));
  }
  return stages;
}

// "decoder.10" after "decoder.9", and stages in the order in which they run.
std::vector<std::string> ordered_stages(const ReferenceFile& file, const std::string& prefix) {
  const std::vector<std::string> parts = {"z_semantic", "z_residual", "z_q", "post",
                                          "upsample.",  "decoder.",   "pcm"};
  const auto rank = [&](const std::string& stage) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (stage.starts_with(parts[i])) return i;
    }
    return parts.size();
  };
  std::vector<std::string> stages;
  for (const std::string& name : file.names()) {
    if (name.starts_with(prefix)) stages.push_back(name.substr(prefix.size()));
  }
  std::sort(stages.begin(), stages.end(), [&](const std::string& a, const std::string& b) {
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return stages;
}

Subject subject_of(const std::string& stage, bool half_reference, size_t last_upsample) {
  if (!half_reference) return Subject::kCodecStage;
  if (stage == "pcm") return Subject::kHalfPcm;
  return stage == join("upsample.", last_upsample) ? Subject::kHalfUpsample : Subject::kNone;
}

void check_stages(Replay& replay, ReferenceFile& file) {
  const IntTensor codes = transposed(file.ints("codes"));
  const Stages stages = decode(replay, codes);
  const std::string prefix = replay.half_codec() ? "fp16." : "fp32.";
  const size_t last_upsample = replay.model.codec.decoder.upsamples.size() - 1;
  for (const std::string& stage : ordered_stages(file, prefix)) {
    const auto at = stages.find(stage);
    const FloatTensor got = at == stages.end() ? FloatTensor{} : transposed(at->second);
    replay.compare({.tensor = "codec:" + prefix + stage,
                    .subject = subject_of(stage, replay.half_codec(), last_upsample)},
                   got, file.floats(prefix + stage));
  }
  replay.dump.add(kFile, "codes", file.ints("codes"));
  for (const auto& [stage, rows] : stages) replay.dump.add(kFile, prefix + stage, transposed(rows));
}

void check_encoding(Replay& replay, ReferenceFile& file) {
  if (!file.has("encode.wav")) return;
  if (replay.half_codec()) return replay.remarks.push_back("encode.* left out: the encoder runs in F32 only");
  if (!replay.model.codec.encoder)
    return replay.remarks.push_back("codec.pth holds no encoder: encode.* left out");
  Ops& ops = replay.ops;
  const codec::Weights& weights = replay.model.codec;
  FloatTensor wav = file.floats("encode.wav");
  const int64_t samples = weights.samples_per_frame;
  const int64_t frames = (wav.shape.elements() + samples - 1) / samples;
  replay.dump.add(kFile, "encode.wav", wav);
  wav.values.resize(static_cast<size_t>(frames * samples), 0.0f);
  wav.shape = Shape{frames * samples, 1};

  Stages stages;
  codec::Encoder encoder(ops, weights, {.frames_per_call = kFramesPerCall, .frames = frames});
  encoder.observe(keeper(ops, stages));
  const Buffer pcm = uploaded(ops, wav, DType::kF32);
  const Buffer codes = ops.allocate(DType::kI32, Shape{frames, weights.codebooks()});
  for (int64_t begin = 0; begin < frames; begin += kFramesPerCall) {
    const int64_t count = std::min(kFramesPerCall, frames - begin);
    encoder.encode(codes.view.rows_from(begin, count), pcm.view.rows_from(begin * samples, count * samples));
  }
  const FloatTensor latent = transposed(stages["encode.latent"]);
  const IntTensor got = transposed(downloaded_ints(ops, codes.view));
  replay.compare({.tensor = "codec:encode.latent", .subject = Subject::kEncodeLatent}, latent,
                 file.floats("encode.latent"));
  replay.compare({.tensor = "codec:encode.codes", .subject = Subject::kEncodeCodes}, got,
                 file.ints("encode.codes"));
  replay.dump.add(kFile, "encode.latent", latent);
  replay.dump.add(kFile, "encode.codes", got);
}

// The reference's PCM of greedy texts is of its F32 codec.
void check_greedy_pcm(Replay& replay) {
  ReferenceFile* file = replay.reference.file("greedy.safetensors");
  if (file == nullptr) return;
  for (const std::string& name : file->cases(".pcm")) {
    const FloatTensor pcm = transposed(decode(replay, transposed(file->ints(name + ".codes")))["pcm"]);
    replay.compare({.tensor = "greedy:" + name + ".pcm", .subject = Subject::kCodecStage}, pcm,
                   file->floats(name + ".pcm"));
    replay.dump.add("greedy.safetensors", name + ".pcm",
                    FloatTensor{Shape{pcm.shape.elements()}, pcm.values});
  }
}

}  // namespace

void replay_codec(Replay& replay) {
  if (ReferenceFile* file = replay.reference.file(kFile)) {
    check_stages(replay, *file);
    check_encoding(replay, *file);
  } else {
    replay.remarks.push_back(join(kFile, " is not in the reference"));
  }
  check_greedy_pcm(replay);
}

}  // namespace drama3
