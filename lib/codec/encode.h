// The encoder (voice cloning): PCM to frames of codes, any number of frames a call, the same codes for every
// chunking.
#pragma once

#include <span>
#include <vector>

#include "lib/codec/layers.h"

namespace drama3::codec {

// One recording at a time, in F32 on every backend. Memory grows with frames_per_call and, by the RoPE tables
// alone, with limits.frames; a call allocates nothing.
class Encoder {
 public:
  // `weights`, which hold an encoder, and `ops` outlive this.
  Encoder(Ops& ops, const Weights& weights, const Limits& limits);

  // Back to frame 0.
  void reset();
  // The next frames of the recording: pcm n * samples_per_frame F32 values; codes [n, codebooks] I32. n is 1
  // to frames_per_call, and the recording stays within limits.frames.
  void encode(const View& codes, const View& pcm);

  // Called with every stage of each later encode(); an empty observer turns it off.
  void observe(Observer observer) { observer_ = std::move(observer); }
  // Fills all scratch with NaN, for tests.
  void spoil_scratch() { spoil(ops_, scratch_); }

 private:
  View run_blocks(const View& pcm);
  View downsample(View rows);
  void quantize(const View& codes, const View& rows);
  void show(std::string_view stage, const View& rows) const {
    if (observer_) observer_(stage, rows);
  }
  // The same rows, which stand in spare 1, after an exchange of spares 0 and 1.
  View exchanged(const View& rows);

  Ops& ops_;
  const Weights& weights_;
  Limits limits_;
  Workspace workspace_;
  EncoderState state_;
  Scratch scratch_;
  std::array<View, 3> spare_;  // scratch_.rows in the order of the moment: spare_[0] holds the rows
  Observer observer_;
  int64_t frames_done_ = 0;
};

// The codes [frames, codebooks], row after row, of a whole mono recording at kSampleRate, zero-padded on the
// right to whole frames; in chunks, so that memory does not grow with its square.
std::vector<int32_t> encode_recording(Ops& ops, const Weights& weights, std::span<const float> pcm);

}  // namespace drama3::codec
