// The backbone of one sequence: appends rows, returns their hidden states, and scores the candidates for a
// frame.
#pragma once

#include <functional>
#include <span>

#include "lib/backbone/state.h"
#include "lib/backbone/weights.h"

namespace drama3::backbone {

// What a replay watches and forces; default-constructed for speech.
struct Probe {
  std::function<void(int layer, const View& x)> layer_in;  // the residual stream entering each layer
  std::function<void(int layer, const Routing& routing)> routing;
  bool quantize_activations = true;
  std::span<const View> forced_routing;  // per layer [all rows, top_k] I32, or empty
};

// Weights and tables outlive it. A row's bits do not depend on how the rows before it were cut into calls.
class Backbone {
 public:
  // Takes the memory of sequences of up to `capacity` rows from the workspace.
  Backbone(Workspace& workspace, const Config& config, const Weights& weights, const EmbedTables& tables,
           int64_t capacity);

  void reset();
  // Appends source's rows: hidden [rows, hidden] = every row after the final norm.
  // The caller sees to it that all rows since reset() fit the capacity. Keeps no state on the host, so that a
  // device may record a call and replay it.
  void run(const View& hidden, const RowSource& source, const Probe& probe = {});
  // out [1, semantic_count + 1] F32: the candidates' logits of one hidden row; the last candidate ends the
  // speech.
  void candidate_logits(const View& out, const View& hidden_row);
  // Runs x [rows, hidden] in place through one layer on a fresh state: the replay of a single
  // layer.
  void run_layer(int layer, const View& x, const Probe& probe = {});
  // out [rows, hidden] = the final norm of x.
  void final_norm(const View& out, const View& x);

 private:
  // Residual rows x through layers [begin, end); normed holds the next norm's output at the end.
  void layers(const Scratch& s, int begin, int end, const Probe& probe, int64_t first_row);
  void delta_mixer(const Scratch& s, const DeltaWeights& weights, const DeltaState& state);
  void attention_mixer(const Scratch& s, const AttentionWeights& weights, const KvCache& cache);

  Ops& ops_;
  const Config& config_;
  const Weights& weights_;
  const EmbedTables& tables_;
  Rope rope_;
  State state_;
  Scratch scratch_;
};

}  // namespace drama3::backbone
