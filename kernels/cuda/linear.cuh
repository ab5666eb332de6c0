// Packed weight matrices and the two kernels' arguments of a projection: one row (gemv) or many (gemm).
//
// Every dot product is taken the same way whatever the number of rows: K in slices of kSliceK, each slice a
// chain of 16 x 8 x 16 tensor-core products from zero in ascending k, slices added in ascending order.
#pragma once

#include "kernels/cuda/common/args.cuh"
#include "kernels/cuda/common/launch.cuh"
#include "lib/tensor/dtype.h"

namespace drama3 {

constexpr int kTile = 16;       // weight rows of one tensor-core tile
constexpr int kStepK = 32;      // columns that a warp takes per pair of 16-byte loads
constexpr int kSliceSteps = 8;  // steps of one slice
constexpr int kSliceK = kStepK * kSliceSteps;
constexpr int kMaxSegments = 6;

// A weight [n, k] of BF16 or F16 as [tiles of 16 rows][steps of 32 columns][upper, lower 8 rows][32 lanes] x
// 8 elements, so that a warp's load is 512 contiguous bytes; n and k padded with zeros.
struct PackedMatrix {
  const uint4* data = nullptr;
  const float* bias = nullptr;  // [n], or null
  int n = 0;
  int k = 0;  // columns of the input row
  int steps = 0;
  DType type = DType::kBF16;
  int tiles() const { return (n + kTile - 1) / kTile; }
};

// How gemv gets its row.
enum class RowInput : int { kPlain, kNorm, kSwiglu };

// One normalised piece of the input row.
struct NormPart {
  const void* in = nullptr;
  const float* weight = nullptr;
  void* copy = nullptr;  // where the normalised piece is also kept for later readers
  int dim = 0;
  float eps = 0.0f;
};

struct GemvSegment {
  const uint4* weight = nullptr;
  const float* bias = nullptr;
  void* out = nullptr;
  void* residual = nullptr;  // [n] of the input's type: += the rounded output, or null
  int n = 0;
  int first_tile = 0;
  int type = 0;  // DType of out
};

struct GemvArgs {
  GemvSegment segments[kMaxSegments];
  int segment_count = 0;
  int k = 0;
  int steps = 0;
  RowInput input = RowInput::kPlain;
  const void* x = nullptr;   // plain row, or the gate of a SwiGLU
  const void* up = nullptr;  // [k], only for SwiGLU
  void* swiglu_copy = nullptr;
  NormPart parts[2];
  int part_count = 0;
};

// Convolution or linear over many rows: column kk of weight row n is tap kk / in_padded, channel kk %
// in_padded.
struct GemmArgs {
  const uint4* weight = nullptr;
  const float* bias = nullptr;
  int n = 0;
  int steps = 0;
  int bias_period = 0;  // bias[n % bias_period]
  void* out = nullptr;
  int64_t out_stride = 0;
  int type = 0;              // DType of out
  bool round_first = false;  // round the sum to the output's type before the bias
  const void* x = nullptr;
  int64_t x_stride = 0;
  const void* tail = nullptr;  // rows before the first; null = zeros
  int64_t tail_stride = 0;
  int rows = 0;  // of out
  int in = 0;
  int in_padded = 0;
  int stride = 1;
  int dilation = 1;
  int history = 0;
};

void gemv(LaunchQueue& queue, DType input, const GemvArgs& args);
void gemm(LaunchQueue& queue, DType input, const GemmArgs& args);

}  // namespace drama3
