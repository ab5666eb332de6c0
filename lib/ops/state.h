// The carried state and the scratch rows that ops read and write; who owns them sizes them once.
#pragma once

#include <cstdint>

#include "lib/tensor/view.h"

namespace drama3 {

// Keys (after norm and RoPE) and values of rows seen; position p stands in slot p mod slots. A linear cache
// has slots for every position; a windowed one needs slots >= window - 1 + rows of the largest call.
struct KvCache {
  View keys;    // [slots, kv_heads * head_dim] activation type
  View values;  // [slots, kv_heads * head_dim] activation type
};

// What a gated delta rule carries from call to call.
struct DeltaState {
  View tail;    // [conv_taps - 1, channels] activation type: the last raw projection rows, oldest first
  View memory;  // [value_heads, key_dim, value_dim] F32
};

// Scratch of delta_mix.
struct DeltaScratch {
  View conv;   // [rows, channels] activation type
  View decay;  // [rows, value_heads] F32
  View beta;   // [rows, value_heads] F32
  View read;   // [rows, value_heads * value_dim] activation type
};

// Scratch of attention_mix.
struct AttentionScratch {
  View query;  // [rows, heads * head_dim] activation type
  View key;    // [rows, kv_heads * head_dim] activation type
};

// Which experts a row goes to, in descending probability, and their weights, which sum to 1.
struct Routing {
  View indices;  // [rows, top_k] I32
  View weights;  // [rows, top_k] F32
};

// Scratch of moe.
struct MoeScratch {
  View router;       // [rows, experts] F32
  Routing routing;   // [rows, top_k]
  View routed;       // [rows, hidden] activation type
  View shared_gate;  // [rows, 1] activation type
  View gate;         // [rows, ffn of the shared expert] activation type
  View up;           // [rows, ffn of the shared expert] activation type
  View shared;       // [rows, hidden] activation type
  View experts;      // U8 workspace of expert_ffn, expert_workspace() bytes
};

// Device-side state of a request's draws.
struct PickState {
  View sampling;  // U8 [sizeof(Sampling)]: the request's settings
  View frame;     // [1] I32: index of the frame being drawn
  View failure;   // [1] I32: 0, or 1 + frame * 16 + codebook of the first non-finite logits
};

}  // namespace drama3
