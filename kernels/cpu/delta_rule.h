// The views and sizes of one delta_rule call, as its per-target kernel takes them.
#pragma once

#include "lib/ops/dims.h"
#include "lib/tensor/view.h"

namespace drama3 {

struct DeltaRule {
  View out;     // [rows, values]
  View qkv;     // [rows, channels] after convolution and silu
  View decay;   // [rows, value_heads]
  View beta;    // [rows, value_heads]
  View memory;  // [value_heads, key_dim, value_dim], updated
  DeltaDims dims;
};

}  // namespace drama3
