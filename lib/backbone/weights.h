// The backbone's weights as handles of a backend, bound by name and checked against the config.
#pragma once

#include <vector>

#include "lib/backbone/config.h"
#include "lib/ops/ops.h"

namespace drama3::backbone {

struct DeltaWeights {
  Linear qkv;    // [channels, hidden] q, k, v rows in that order
  Linear z;      // [values, hidden]
  Linear b;      // [value_heads, hidden]
  Linear a;      // [value_heads, hidden]
  View conv;     // [conv_taps, channels] F32, oldest tap first
  View a_log;    // [value_heads] F32
  View dt_bias;  // [value_heads] F32
  Norm norm;     // [value_dim], plain gain
  Linear out;    // [hidden, values]
};

struct AttentionWeights {
  Linear query_gate;  // [heads * 2 * head_dim, hidden], per head query rows then gate rows
  Linear key;         // [kv_heads * head_dim, hidden]
  Linear value;       // [kv_heads * head_dim, hidden]
  Norm query_norm;    // [head_dim], 1 + w
  Norm key_norm;      // [head_dim], 1 + w
  Linear out;         // [hidden, heads * head_dim]
};

struct LayerWeights {
  Norm input_norm;             // [hidden], 1 + w
  Norm post_norm;              // [hidden], 1 + w
  DeltaWeights delta;          // of a delta layer
  AttentionWeights attention;  // of an attention layer
  MoeMix moe;
};

struct Weights {
  View embedding;   // [vocabulary, hidden] stored type
  Norm final_norm;  // [hidden], 1 + w
  Linear head;      // [semantic_count + 1, hidden]: the semantic rows, then end of speech
  std::vector<LayerWeights> layers;
};

// Binds every tensor the backbone needs, in layer order, and prepares it on `ops`.
Weights load_weights(Ops& ops, WeightSource& source, const Config& config);

}  // namespace drama3::backbone
