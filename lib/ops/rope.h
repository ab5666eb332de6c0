// The cos and sin tables of rotary position embedding.
#pragma once

#include "lib/ops/workspace.h"

namespace drama3 {

struct RopeSpec {
  int64_t positions = 0;
  int64_t rotary = 0;  // dims turned; frequency i of rotary/2 is theta^(-2i / rotary), rounded to F32
  float theta = 10000.0f;
  bool interleaved = false;  // pairs (2i, 2i+1); otherwise (i, i + rotary/2)
  bool round_to_bf16 = false;
};

// Tables in the workspace. The angle is the F32 product position * frequency, as the
// public models compute it, so that long positions lose phase the same way.
Rope make_rope(Workspace& workspace, const RopeSpec& spec);

}  // namespace drama3
