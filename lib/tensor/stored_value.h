// Reading single elements of any stored float type, exactly widened to F32; for loading, not for inner loops.
#pragma once

#include "lib/tensor/view.h"

namespace drama3 {

// Element (row, col) of a host view in F32, F16, BF16 or FP8 e4m3, aligned or not.
float stored_value(const View& view, int64_t row, int64_t col);

}  // namespace drama3
