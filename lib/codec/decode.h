// The decoder: frames of codes to PCM, any number of frames a call, the same samples for every chunking.
#pragma once

#include "lib/codec/layers.h"

namespace drama3::codec {

// One utterance at a time. All memory is taken when it is made; a call allocates nothing.
class Decoder {
 public:
  // `weights` and `ops` outlive the decoder.
  Decoder(Ops& ops, const Weights& weights, const Limits& limits);

  // Back to frame 0.
  void reset();
  // The next frames of the utterance: codes [n, codebooks] I32, clamped to their tables; pcm n *
  // samples_per_frame values of the codec type in (-1, 1). n is 1 to frames_per_call, and the utterance stays
  // within limits.frames.
  void decode(const View& pcm, const View& codes);

  // Called with every stage of each later decode(); an empty observer turns it off.
  void observe(Observer observer) { observer_ = std::move(observer); }
  // Fills all scratch with NaN, for tests.
  void spoil_scratch() { spoil(ops_, scratch_); }

  int64_t frames_done() const { return frames_done_; }
  const Limits& limits() const { return limits_; }

 private:
  void look_up(const View& z, const View& codes);
  View upsample(View rows);
  View run_blocks(View rows);
  void show(std::string_view stage, const View& rows) const {
    if (observer_) observer_(stage, rows);
  }
  void show(std::string_view stage, size_t index, const View& rows) const;
  // The same rows, which stand in spare 1, after an exchange of spares 0 and 1.
  View exchanged(const View& rows);

  Ops& ops_;
  const Weights& weights_;
  Limits limits_;
  Workspace workspace_;
  DecoderState state_;
  Scratch scratch_;
  std::array<View, 3> spare_;  // scratch_.rows in the order of the moment: spare_[0] holds the rows
  Observer observer_;
  int64_t frames_done_ = 0;
};

}  // namespace drama3::codec
