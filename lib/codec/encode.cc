// The encoder as op calls: blocks, downsampling, pre_module, quantisers.
#include "lib/codec/encode.h"

#include <algorithm>
#include <utility>

namespace drama3::codec {
namespace {

constexpr int64_t kFramesPerChunk = 16;

}  // namespace

Encoder::Encoder(Ops& ops, const Weights& weights, const Limits& limits)
    : ops_(ops),
      weights_(weights),
      limits_(limits),
      workspace_(ops),
      state_(make_state(workspace_, DType::kF32, weights, limits)),
      scratch_(make_encoder_scratch(workspace_, DType::kF32, weights, limits.frames_per_call)) {}

void Encoder::reset() {
  codec::reset(ops_, state_.carried);
  frames_done_ = 0;
}

void Encoder::encode(const View& codes, const View& pcm) {
  const int64_t frames = codes.rows();
  INVARIANT(frames > 0 && frames <= limits_.frames_per_call && frames_done_ + frames <= limits_.frames,
            frames, " frames after ", frames_done_, ", limits ", limits_.frames_per_call, " and ",
            limits_.frames);
  INVARIANT(codes.cols() == weights_.codebooks(), codes.shape.text());
  INVARIANT(pcm.elements() == frames * weights_.samples_per_frame, pcm.shape.text());

  spare_ = scratch_.rows;
  const View latent = run_blocks(shaped(pcm, pcm.elements(), 1));
  show("encode.latent", latent);
  const View rows = downsample(latent);
  transform(ops_, rows, weights_.encoder->pre, state_.pre, scratch_.wide);
  show("encode.pre", rows);
  quantize(codes, rows);
  frames_done_ += frames;
}

View Encoder::run_blocks(const View& pcm) {
  const EncoderWeights& part = *weights_.encoder;
  View rows = shaped(spare_[0], pcm.rows(), part.first.out);
  ops_.conv(rows, pcm, part.first, state_.first);
  for (size_t i = 0; i < part.blocks.size(); ++i) {
    const EncoderBlock& block = part.blocks[i];
    const View spare1 = shaped(spare_[1], rows.rows(), rows.cols());
    const View spare2 = shaped(spare_[2], rows.rows(), rows.cols());
    for (size_t u = 0; u < block.units.size(); ++u) {
      ops_.residual_unit(rows, rows, block.units[u], state_.blocks[i].units[u], spare1, spare2);
    }
    ops_.snake(rows, rows, block.snake);
    const View shorter = shaped(spare_[1], rows.rows() / block.down.stride, block.down.out);
    ops_.conv(shorter, rows, block.down, state_.blocks[i].resample);
    rows = exchanged(shorter);
    if (block.transformer) {
      transform(ops_, rows, *block.transformer, state_.transformers[i], scratch_.wide);
    }
  }
  const View latent = shaped(spare_[1], rows.rows(), part.last.out);
  ops_.snake(rows, rows, part.snake);
  ops_.conv(latent, rows, part.last, state_.last);
  return exchanged(latent);
}

View Encoder::downsample(View rows) {
  const EncoderWeights& part = *weights_.encoder;
  for (size_t i = 0; i < part.downsamples.size(); ++i) {
    const Downsample& stage = part.downsamples[i];
    const View shorter = shaped(spare_[1], rows.rows() / stage.down.stride, stage.down.out);
    ops_.conv(shorter, rows, stage.down, state_.downsamples[i].resample);
    rows = exchanged(shorter);
    conv_next(ops_, rows, stage.block, state_.downsamples[i].depthwise, spare_[1], scratch_.wide);
  }
  return rows;
}

// Each codebook takes the entry nearest to what the ones before it left of the rows.
void Encoder::quantize(const View& codes, const View& rows) {
  const View projected = shaped(spare_[1], rows.rows(), rows.cols());
  for (int64_t k = 0; k < weights_.codebooks(); ++k) {
    const Quantizer& quantizer = weights_.quantizers[static_cast<size_t>(k)];
    const View entry = shaped(scratch_.narrow, rows.rows(), quantizer.table.cols());
    const View column = codes.cols_from(k, 1);
    ops_.conv(entry, rows, quantizer.in, View{});
    ops_.nearest(column, entry, quantizer.table);
    ops_.lookup(entry, column, quantizer.table);
    ops_.conv(projected, entry, quantizer.out, View{});
    ops_.scaled_add(rows, rows, projected, weights_.encoder->minus_one);
  }
}

View Encoder::exchanged(const View& rows) {
  std::swap(spare_[0], spare_[1]);
  return rows;
}

std::vector<int32_t> encode_recording(Ops& ops, const Weights& weights, std::span<const float> pcm) {
  const int64_t samples = weights.samples_per_frame;
  const int64_t frames = (static_cast<int64_t>(pcm.size()) + samples - 1) / samples;
  const int64_t per_call = std::min(frames, kFramesPerChunk);
  std::vector<int32_t> codes(static_cast<size_t>(frames * weights.codebooks()));
  if (frames == 0) return codes;
  Encoder encoder(ops, weights, {.frames_per_call = per_call, .frames = frames});
  const Buffer code_rows = ops.allocate(DType::kI32, Shape{per_call, weights.codebooks()});
  const Buffer audio = ops.allocate(DType::kF32, Shape{per_call * samples, 1});
  std::vector<float> padded(static_cast<size_t>(per_call * samples));
  for (int64_t first = 0; first < frames; first += per_call) {
    const int64_t count = std::min(per_call, frames - first);
    const auto rest = pcm.subspan(static_cast<size_t>(first * samples));
    const size_t present = std::min(rest.size(), static_cast<size_t>(count * samples));
    std::fill(padded.begin(), padded.end(), 0.0f);
    std::copy_n(rest.begin(), present, padded.begin());
    const View chunk = audio.view.rows_from(0, count * samples);
    ops.upload(chunk, View(padded.data(), DType::kF32, chunk.shape));
    const View coded = code_rows.view.rows_from(0, count);
    encoder.encode(coded, chunk);
    ops.download(View(codes.data() + first * weights.codebooks(), DType::kI32, coded.shape), coded);
  }
  return codes;
}

}  // namespace drama3::codec
