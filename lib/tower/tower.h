// The tower of one sequence: thirteen layers that read each backbone row once and draw nine codes of a frame.
#pragma once

#include <functional>
#include <string>

#include "lib/tower/state.h"
#include "lib/tower/weights.h"

namespace drama3::tower {

// What a replay watches: "shared.<l>", "residual.<k>" [rows, dim] and "logits.<k>" [rows, entries] F32.
using Probe = std::function<void(const std::string& stage, const View& rows)>;

// Weights and tables outlive it. The tower's row t looks one step ahead: its layers see row t's hidden state
// and what follows it, a token or a frame.
class Tower {
 public:
  // Takes the memory of sequences of up to `capacity` rows from the workspace.
  Tower(Workspace& workspace, const Config& config, const Weights& weights, const EmbedTables& tables,
        int64_t capacity);

  void reset();
  // Appends rows whose follower is known: hidden [rows, dim], next.ids/codes = what follows each row. Any
  // number that fits. A probe sees stages of each part of at most max_rows rows.
  void append(const View& hidden, const RowSource& next, const Probe& probe = {});
  // Appends the last row, which a frame follows: codes [1, codebooks] holds c0 in column 0 and gets c1 .. in
  // the others, drawn by `pick`. `next` is that same frame as a row source (id -1). Keeps no state on the
  // host.
  void draw_frame(const View& hidden, const RowSource& next, const PickState& pick);

 private:
  // One layer over rows: s.x becomes the layer's output.
  void layer(const Scratch& s, const LayerWeights& weights, const KvCache& cache);
  void attention(const Scratch& s, const LayerWeights& weights, const KvCache& cache);

  Ops& ops_;
  const Config& config_;
  const Weights& weights_;
  const EmbedTables& tables_;
  Rope rope_;
  State state_;
  Scratch scratch_;
};

}  // namespace drama3::tower
