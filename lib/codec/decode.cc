// The decoder as op calls: look-up, post_module, upsampling, blocks, tanh.
#include "lib/codec/decode.h"

#include <utility>

#include "lib/base/error.h"

namespace drama3::codec {

Decoder::Decoder(Ops& ops, const Weights& weights, const Limits& limits)
    : ops_(ops),
      weights_(weights),
      limits_(limits),
      workspace_(ops),
      state_(make_state(workspace_, ops.codec_type(), weights.decoder, limits)),
      scratch_(make_decoder_scratch(workspace_, ops.codec_type(), weights, limits.frames_per_call)) {}

void Decoder::reset() {
  codec::reset(ops_, state_.carried);
  frames_done_ = 0;
}

void Decoder::decode(const View& pcm, const View& codes) {
  const int64_t frames = codes.rows();
  INVARIANT(frames > 0 && frames <= limits_.frames_per_call && frames_done_ + frames <= limits_.frames,
            frames, " frames after ", frames_done_, ", limits ", limits_.frames_per_call, " and ",
            limits_.frames);
  INVARIANT(codes.cols() == weights_.codebooks(), codes.shape.text());
  INVARIANT(pcm.elements() == frames * weights_.samples_per_frame, pcm.shape.text());

  const DecoderWeights& part = weights_.decoder;
  spare_ = scratch_.rows;
  View rows = shaped(spare_[0], frames, weights_.latent);
  look_up(rows, codes);
  transform(ops_, rows, part.post, state_.post, scratch_.wide);
  show("post", rows);
  rows = run_blocks(upsample(rows));

  const View samples = shaped(pcm, pcm.elements(), 1);
  const size_t stages = part.blocks.size();
  ops_.snake(rows, rows, part.snake);
  show("decoder.", stages + 1, rows);
  ops_.conv(samples, rows, part.last, state_.last);
  show("decoder.", stages + 2, samples);
  ops_.tanh(samples, samples);
  show("decoder.", stages + 3, samples);
  show("pcm", samples);
  frames_done_ += frames;
}

// z = P_0(C_0[c_0]) + (P_1(C_1[c_1]) + P_2(C_2[c_2]) + ...), the residual sum in that order.
void Decoder::look_up(const View& z, const View& codes) {
  const View residual = shaped(spare_[1], z.rows(), z.cols());
  const View projected = shaped(spare_[2], z.rows(), z.cols());
  for (int64_t k = 0; k < weights_.codebooks(); ++k) {
    const Quantizer& quantizer = weights_.quantizers[static_cast<size_t>(k)];
    const View entry = shaped(scratch_.narrow, z.rows(), quantizer.table.cols());
    ops_.lookup(entry, codes.cols_from(k, 1), quantizer.table);
    ops_.conv(k == 0 ? z : k == 1 ? residual : projected, entry, quantizer.out, View{});
    if (k > 1) ops_.add(residual, residual, projected);
  }
  show("z_semantic", z);
  if (weights_.codebooks() > 1) {
    show("z_residual", residual);
    ops_.add(z, z, residual);
  }
  show("z_q", z);
}

View Decoder::upsample(View rows) {
  const DecoderWeights& part = weights_.decoder;
  for (size_t i = 0; i < part.upsamples.size(); ++i) {
    const Upsample& stage = part.upsamples[i];
    const View longer = shaped(spare_[1], rows.rows() * stage.up.stride, stage.up.out);
    ops_.conv_transpose(longer, rows, stage.up, state_.upsamples[i].resample);
    rows = exchanged(longer);
    conv_next(ops_, rows, stage.block, state_.upsamples[i].depthwise, spare_[1], scratch_.wide);
    show("upsample.", i, rows);
  }
  return rows;
}

View Decoder::run_blocks(View rows) {
  const DecoderWeights& part = weights_.decoder;
  const View first = shaped(spare_[1], rows.rows(), part.first.out);
  ops_.conv(first, rows, part.first, state_.first);
  rows = exchanged(first);
  show("decoder.", 0, rows);
  for (size_t i = 0; i < part.blocks.size(); ++i) {
    const DecoderBlock& block = part.blocks[i];
    const View longer = shaped(spare_[1], rows.rows() * block.up.stride, block.up.out);
    ops_.snake(rows, rows, block.snake);
    ops_.conv_transpose(longer, rows, block.up, state_.blocks[i].resample);
    rows = exchanged(longer);
    const View spare0 = shaped(spare_[1], rows.rows(), rows.cols());
    const View spare1 = shaped(spare_[2], rows.rows(), rows.cols());
    for (size_t u = 0; u < block.units.size(); ++u) {
      ops_.residual_unit(rows, rows, block.units[u], state_.blocks[i].units[u], spare0, spare1);
    }
    show("decoder.", i + 1, rows);
  }
  return rows;
}

void Decoder::show(std::string_view stage, size_t index, const View& rows) const {
  if (observer_) observer_(join(stage, index), rows);
}

View Decoder::exchanged(const View& rows) {
  std::swap(spare_[0], spare_[1]);
  return rows;
}

}  // namespace drama3::codec
