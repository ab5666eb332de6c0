// The tower's weights as handles of a backend, bound by name and checked against the config.
#pragma once

#include <vector>

#include "lib/ops/ops.h"
#include "lib/tower/config.h"

namespace drama3::tower {

// One of the matrices that fill a row of queries, keys and values.
struct QkvPart {
  int64_t column = 0;  // where its output stands in the row
  Linear weight;
};

struct LayerWeights {
  Norm embedding_norm;       // [dim], plain gain
  Norm hidden_norm;          // [dim]
  Linear combine;            // [dim, 2 * dim], embedding half first
  Norm attention_norm;       // [dim]
  std::vector<QkvPart> qkv;  // wqkv alone, or q, k and v: [heads * head_dim + 2 * kv_heads * head_dim, dim]
  Norm query_norm;           // [head_dim]; empty weight = none
  Norm key_norm;             // [head_dim]; empty weight = none
  Linear out;                // [dim, heads * head_dim]
  Norm ffn_norm;             // [dim]
  Linear gate;               // [ffn, dim]
  Linear up;                 // [ffn, dim]
  Linear down;               // [dim, ffn]
  Norm out_norm;             // [dim]
};

struct Weights {
  View code_embeddings;  // [codebooks * code_vocabulary, dim] stored type, row k * code_vocabulary + code
  std::vector<LayerWeights> shared;    // shared_layers
  std::vector<LayerWeights> residual;  // codebooks - 1
  std::vector<Linear> heads;           // of residual layer k: [entries of codebook k + 1, dim]
};

// Binds every tensor the tower needs, in layer order, and prepares it on `ops`.
Weights load_weights(Ops& ops, WeightSource& source, const Config& config);

}  // namespace drama3::tower
