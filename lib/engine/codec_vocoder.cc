// Codes up, samples down, around the decoder.
#include "lib/engine/codec_vocoder.h"

#include "lib/engine/stage_timer.h"

namespace drama3 {

CodecVocoder::CodecVocoder(Ops& ops, const codec::Weights& weights, const codec::Limits& limits)
    : ops_(ops),
      weights_(weights),
      decoder_(ops, weights, limits),
      workspace_(ops),
      codes_(workspace_.take(DType::kI32, Shape{limits.frames_per_call, weights.codebooks()})),
      pcm_(workspace_.take(ops.codec_type(), Shape{1, limits.frames_per_call * weights.samples_per_frame})) {}

void CodecVocoder::start() {
  seconds_ = 0.0;
  decoder_.reset();
}

void CodecVocoder::begin(std::span<const int32_t> codes) {
  const StageTimer timer(seconds_);
  const int64_t frames = static_cast<int64_t>(codes.size()) / weights_.codebooks();
  const View rows = codes_.rows_from(0, frames);
  ops_.upload(rows, View(const_cast<int32_t*>(codes.data()), DType::kI32, rows.shape));
  decoder_.decode(pcm_.cols_from(0, frames * weights_.samples_per_frame), rows);
}

void CodecVocoder::finish(std::span<float> pcm) {
  const StageTimer timer(seconds_);
  const View samples = pcm_.cols_from(0, static_cast<int64_t>(pcm.size()));
  ops_.download(View(pcm.data(), DType::kF32, samples.shape), samples);
}

}  // namespace drama3
