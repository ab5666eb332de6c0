// Turning stored weights into the layouts that the kernels stream.
#pragma once

#include "kernels/cuda/linear.cuh"
#include "lib/tensor/view.h"

namespace drama3 {

// Where the value of (weight row n, tap, channel) stands in a dense stored tensor, with n = high * period +
// low.
struct PackSource {
  const void* data = nullptr;
  DType type = DType::kF32;
  const void* scale = nullptr;  // 128 x 128 block scales of an FP8 matrix, or null
  DType scale_type = DType::kF32;
  int64_t base = 0;
  int64_t high_step = 0;
  int64_t low_step = 0;
  int64_t tap_step = 0;
  int64_t channel_step = 1;
  int period = 1;
};

struct PackTarget {
  uint4* data = nullptr;
  DType type = DType::kBF16;
  int first_row = 0;  // of the packed matrix; rows of other sources stand elsewhere
  int rows = 0;
  int steps = 0;
  int first_channel = 0;  // of the columns of a tap, where the source begins
  int channels = 0;       // of the source
  int in_padded = 0;      // columns of one tap
};

// Writes the rows and channels of `target` that the source has; padding must have been zeroed.
void pack_matrix(cudaStream_t stream, const PackTarget& target, const PackSource& source);

// FP8 rows [n, k] into 16 x 128 blocks; block (i, j) of the matrix starts at out + (i * k / 128 + j) * stride
// words.
void pack_codes(cudaStream_t stream, uint4* out, const uint8_t* codes, int n, int k, int stride);

// out[i] = add + in[i] of a stored float type.
void pack_vector(cudaStream_t stream, float* out, const void* in, DType type, int64_t count, float add);

}  // namespace drama3
