// What the backbone carries from call to call, and the scratch rows of one call.
#pragma once

#include <vector>

#include "lib/backbone/config.h"
#include "lib/ops/workspace.h"

namespace drama3::backbone {

// Written by the layer's mixer, once per row.
struct LayerState {
  DeltaState delta;  // of a delta layer
  KvCache cache;     // of an attention layer
};

// One sequence.
struct State {
  std::vector<LayerState> layers;
  View position;  // [1] I32: rows seen; advanced at the end of a call
};

// Rows of one call, at most max_rows of them.
struct Scratch {
  View x;           // [max_rows, hidden] the residual stream
  View normed;      // [max_rows, hidden] input of the next mixer or mixture
  View mixed;       // [max_rows, max(values, heads * head_dim)] a mixer's output before its out projection
  View update;      // [max_rows, hidden] what is added to the residual stream
  View qkv;         // [max_rows, channels]
  View z;           // [max_rows, values]
  View b;           // [max_rows, value_heads]
  View a;           // [max_rows, value_heads]
  View query_gate;  // [max_rows, heads * 2 * head_dim]
  View key;         // [max_rows, kv_heads * head_dim]
  View value;       // [max_rows, kv_heads * head_dim]
  DeltaScratch delta;
  AttentionScratch attention;
  MoeScratch moe;
};

// State for sequences of at most `capacity` rows, at position 0.
State make_state(Workspace& workspace, const Config& config, int64_t capacity);
// Back to an empty sequence (cache slots beyond the position are never read).
void reset(Ops& ops, State& state);
Scratch make_scratch(Workspace& workspace, const Config& config, const MoeMix& moe);
// The same scratch cut to the first `rows` rows.
Scratch first_rows(const Scratch& scratch, int64_t rows);

}  // namespace drama3::backbone
