// What the tower carries from call to call, and the scratch rows of one call.
#pragma once

#include <vector>

#include "lib/ops/workspace.h"
#include "lib/tower/config.h"

namespace drama3::tower {

// One sequence: every layer has its own cache over all rows.
struct State {
  std::vector<KvCache> shared;    // written by its layer, once per row
  std::vector<KvCache> residual;  // written by its layer, once per row
  View position;                  // [1] I32: rows seen; advanced when all layers have seen them
};

// Rows of one call, at most max_rows of them.
struct Scratch {
  View embedding;  // [max_rows, dim] what follows each row
  View pair;       // [max_rows, 2 * dim] normed embedding and normed hidden side by side
  View x;          // [max_rows, dim] the stream from layer to layer
  View y;          // [max_rows, dim] the residual stream inside a layer
  View normed;     // [max_rows, dim]
  View qkv;        // [max_rows, (heads + 2 * kv_heads) * head_dim]
  View mixed;      // [max_rows, heads * head_dim]
  View update;     // [max_rows, dim]
  View gate;       // [max_rows, ffn]
  View up;         // [max_rows, ffn]
  View product;    // [max_rows, ffn] apart from gate, so that a backend can merge it into what reads it
  AttentionScratch attention;
  View logits;  // [1, code_vocabulary] F32
};

// State for sequences of at most `capacity` rows, at position 0.
State make_state(Workspace& workspace, const Config& config, int64_t capacity);
Scratch make_scratch(Workspace& workspace, const Config& config);
// The same scratch cut to the first `rows` rows.
Scratch first_rows(const Scratch& scratch, int64_t rows);

}  // namespace drama3::tower
