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
constexpr int kSliceSteps = 4;  // steps of one slice
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

// A BF16 row looked up by what the next position holds: the text row of the id, or where that is negative the
// code's row of the codebook's table.
struct RowGather {
  const int* id = nullptr;  // null: no look-up
  const int* code = nullptr;
  Rows<const bf16> text, table;
  int64_t text_rows = 0;
  int64_t entries = 0;   // of the codebook
  bf16* copy = nullptr;  // where the row is also kept
};

// One normalised piece of the input row.
struct NormPart {
  const void* in = nullptr;
  const float* weight = nullptr;
  void* copy = nullptr;  // where the normalised piece is also kept for later readers
  int dim = 0;
  float eps = 0.0f;
  const void* z = nullptr;  // not null: heads are normed alone and gated by silu(z)
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
  const void* x = nullptr;  // the row, where it has no normalised parts
  NormPart parts[2];        // otherwise the row is these, one after the other
  int part_count = 0;
  RowGather gather;  // not empty: the first part's row is looked up
  void* swiglu =
      nullptr;  // [n] of the input's type: silu(segment 0) * segment 1, both rounded first; or null

  __host__ __device__ int tiles() const {
    const GemvSegment& last = segments[segment_count - 1];
    return last.first_tile + (last.n + kTile - 1) / kTile;
  }
  // Tiles that one block finishes together: a SwiGLU needs the same one of both segments.
  __host__ __device__ int tiles_of_unit() const { return swiglu == nullptr ? 1 : 2; }
  __host__ __device__ int slices() const { return (steps + kSliceSteps - 1) / kSliceSteps; }  // of one tile
  __host__ __device__ int slices_of_unit() const { return slices() * tiles_of_unit(); }
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

void gemv(LaunchQueue& queue, DType input, const GemvArgs& args);  // one row
void gemm(LaunchQueue& queue, DType input, const GemmArgs& args);

}  // namespace drama3
