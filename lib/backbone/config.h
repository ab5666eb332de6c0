// Sizes and constants of the backbone (Qwen3.5-MoE text model as Drama 3 uses it), checked where they are
// parsed.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/ops/dims.h"

namespace drama3::backbone {

enum class Mixer : uint8_t { kDelta, kAttention };

struct Config {
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  float eps = 1e-6f;
  std::vector<Mixer> layers;  // the mixer of each layer

  int64_t heads = 0;  // attention
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t rotary = 0;
  float rope_theta = 1e7f;

  DeltaDims delta;

  int64_t experts = 0;
  int64_t top_k = 0;
  int64_t expert_ffn = 0;
  int64_t shared_ffn = 0;
  bool renormalize = true;

  int64_t semantic_start = 0;  // vocabulary row of semantic code 0
  int64_t semantic_count = 0;  // semantic codes
  int64_t end_token = 0;       // vocabulary row of end of speech
};

}  // namespace drama3::backbone
