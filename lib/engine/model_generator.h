// The frame generator of a loaded model: backbone, head, draws and tower of one sequence.
#pragma once

#include <functional>
#include <vector>

#include "lib/backbone/backbone.h"
#include "lib/engine/session.h"
#include "lib/ops/workspace.h"
#include "lib/tower/tower.h"

namespace drama3 {

// Configs, weights and tables of the two parts that a generator runs; they outlive it.
struct GeneratorModel {
  const backbone::Config& backbone_config;
  const backbone::Weights& backbone;
  const tower::Config& tower_config;
  const tower::Weights& tower;
  const EmbedTables& tables;
};

class ModelGenerator final : public FrameGenerator {
 public:
  // Takes the memory of sequences of up to `capacity` rows.
  ModelGenerator(Ops& ops, const GeneratorModel& model, int64_t capacity);

  int64_t codebooks() const override { return config_.codebooks; }
  void start(const PromptRows& prompt, const Sampling& sampling, int64_t max_frames) override;
  bool next(std::span<int32_t> codes) override;

  size_t state_bytes() const { return workspace_.bytes(); }
  // Wall seconds of each stage since the last start(); on a device, of enqueueing.
  const StageSeconds& stage_seconds() const { return seconds_; }

 private:
  void prompt_rows(const PromptRows& prompt);
  // Candidate logits of the last hidden row, the semantic draw, the tower with its nine draws.
  void draw_frame();
  // Enqueues the step of the next frame and the sending of what it draws.
  void enqueue_frame();
  // The frame before as a backbone row, then draw_frame().
  void append_frame();

  Ops& ops_;
  const tower::Config& config_;
  const int64_t semantic_count_;
  const int64_t capacity_;
  Workspace workspace_;
  backbone::Backbone backbone_;
  tower::Tower tower_;
  View ids_;         // [1, max_rows] I32 prompt ids of a call
  View next_ids_;    // [1, max_rows] I32 what follows each of those rows
  View row_codes_;   // [max_rows, codebooks] I32 reference frames of a call
  View next_codes_;  // [max_rows, codebooks] I32
  View hidden_;      // [max_rows, hidden] final-norm rows of a call
  View last_;        // [1, hidden] the row that the next frame is drawn from
  View logits_;      // [1, semantic_count + 1] F32
  View frame_id_;    // [1, 1] I32, always -1: the frame being drawn as a row
  View drawn_;       // [1, codebooks + 1] I32 codes_, then the failure of pick_
  View codes_;       // [1, codebooks] I32 the frame being drawn, or drawn last
  PickState pick_;
  std::function<void()> draw_step_;    // draw_frame
  std::function<void()> append_step_;  // append_frame
  std::vector<int32_t> received_;      // drawn_ of one frame
  int64_t frames_ = 0;                 // that next() has returned
  int64_t enqueued_ = 0;               // frames whose step has been enqueued
  int64_t max_frames_ = 0;
  StageSeconds seconds_;
};

}  // namespace drama3
