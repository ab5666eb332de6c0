// Snake of some rows on the caller's thread, for kernels that fuse it.
#pragma once

#include "lib/ops/weights.h"

namespace drama3 {

// out = in + sin(alpha in)^2 / (alpha + 1e-9); out may be in.
void snake_rows(const View& out, const View& in, const Snake& snake);

}  // namespace drama3
