// Sizes and constants of the tower, checked where they are parsed.
#pragma once

#include <cstdint>

namespace drama3::tower {

struct Config {
  int64_t dim = 0;  // equals the backbone's hidden
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn = 0;
  float eps = 1e-6f;
  int64_t codebooks = 0;        // codes of a frame, the semantic one included
  int64_t code_vocabulary = 0;  // rows per codebook of the embedding table
  int64_t shared_layers = 0;
  float rope_theta = 1e7f;
  int64_t rotary = 0;

  int64_t residual_layers() const { return codebooks - 1; }
};

}  // namespace drama3::tower
