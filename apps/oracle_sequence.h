// One sequence of rows through backbone and tower, as the oracle replays it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/oracle_replay.h"
#include "lib/backbone/backbone.h"

namespace drama3 {

// Rows of a sequence: text ids, or -1 and the codes of a frame.
struct Rows {
  IntTensor ids;    // [1, rows]
  IntTensor codes;  // [rows, codebooks]

  int64_t count() const { return static_cast<int64_t>(ids.values.size()); }
  void add_text(int32_t id, int64_t codebooks);
  void add_frame(const IntTensor& frames, int64_t frame);  // row `frame` of [frames, codebooks]
};

// Ids followed by frames [frames, codebooks].
Rows prompt_and_frames(const std::vector<int32_t>& ids, const IntTensor& frames);
// Ids with -1 where the next of the frames stands.
Rows mixed_rows(const std::vector<int32_t>& ids, const IntTensor& frames);
// What follows each row but the last; `last` as a frame follows that.
Rows followers(const Rows& rows, const IntTensor& last);

// What a run of the backbone leaves.
struct BackboneRun {
  FloatTensor hidden;                 // [rows, hidden] after the final norm
  std::vector<FloatTensor> layer_in;  // per layer [rows, hidden]
  std::vector<IntTensor> routing;     // per layer [rows, top_k]
};

// How a run of the backbone departs from speech.
struct BackboneForcing {
  bool quantize_activations = true;
  std::vector<IntTensor> routing;  // per layer [rows, top_k], or empty
};

BackboneRun run_backbone(const Replay& replay, const Rows& rows, const BackboneForcing& forcing);
// One layer, and the final norm after the last one, on rows that stand for a whole sequence; hidden is what
// leaves it.
BackboneRun run_layer(const Replay& replay, int layer, const FloatTensor& x, const BackboneForcing& forcing);
// [rows, candidates] of hidden rows.
FloatTensor candidate_logits(const Replay& replay, const FloatTensor& hidden);

// Tower stages "shared.<l>", "residual.<k>" and "logits.<k>" of all rows.
using TowerStages = std::map<std::string, FloatTensor>;
TowerStages run_tower(const Replay& replay, const FloatTensor& hidden, const Rows& next);

// One text of greedy.safetensors.
struct GreedyText {
  std::string name;  // "0"
  std::vector<int32_t> ids;
  IntTensor codes;  // [frames, codebooks]

  int64_t prompt() const { return static_cast<int64_t>(ids.size()); }
  int64_t frames() const { return codes.rows(); }
  // The rows of all frames but the last.
  Rows rows() const;
  // What follows each of those rows.
  Rows next() const;
};
std::vector<GreedyText> greedy_texts(Replay& replay);

// The prompt of reference.safetensors.
struct RecordedPrompt {
  Rows rows;
  Rows next;
  IntTensor frame;  // [1, codebooks] chosen after it
};
RecordedPrompt recorded_prompt(Replay& replay);

}  // namespace drama3
