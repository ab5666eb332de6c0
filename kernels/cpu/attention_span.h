// One query head and the keys it sees, as the attention kernel takes them.
#pragma once

#include "lib/ops/state.h"

namespace drama3 {

struct AttentionSpan {
  const float* query = nullptr;  // [head_dim]
  const KvCache* cache = nullptr;
  int64_t column = 0;  // first column of the key/value head in the cache's rows
  int64_t first = 0;   // positions [first, last]
  int64_t last = 0;
  int64_t head_dim = 0;
  float scale = 1.0f;
};

}  // namespace drama3
