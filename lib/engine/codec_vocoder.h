// The vocoder of a loaded model: the codec's decoder with its codes and samples on the host.
#pragma once

#include "lib/codec/decode.h"
#include "lib/engine/session.h"
#include "lib/ops/workspace.h"

namespace drama3 {

class CodecVocoder final : public Vocoder {
 public:
  // `weights` and `ops` outlive it.
  CodecVocoder(Ops& ops, const codec::Weights& weights, const codec::Limits& limits);

  int64_t samples_per_frame() const override { return weights_.samples_per_frame; }
  int64_t max_frames_per_call() const override { return decoder_.limits().frames_per_call; }
  bool runs_ahead() const override { return ops_.runs_ahead(); }
  void start() override;
  void begin(std::span<const int32_t> codes) override;
  void finish(std::span<float> pcm) override;

  // Wall seconds spent in calls since the last start().
  double seconds() const { return seconds_; }

 private:
  Ops& ops_;
  const codec::Weights& weights_;
  codec::Decoder decoder_;
  Workspace workspace_;
  View codes_;  // [frames_per_call, codebooks] I32
  View pcm_;    // [1, frames_per_call * samples_per_frame] codec type
  double seconds_ = 0.0;
};

}  // namespace drama3
