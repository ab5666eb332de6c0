// The draw of one code from a row of logits.
#pragma once

#include "kernels/cuda/common/launch.cuh"
#include "lib/ops/ops.h"

namespace drama3 {

constexpr int kMaxCandidates = 8192;

void pick_code(LaunchQueue& queue, const View& code, const View& logits, const PickState& state,
               int64_t codebook);

}  // namespace drama3
