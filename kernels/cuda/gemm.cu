// Projections and convolutions of many rows on tensor cores, with the sums of gemv.
#include "kernels/cuda/common/rows.cuh"
#include "kernels/cuda/linear.cuh"
#include "lib/base/check.h"

namespace drama3 {
namespace {

constexpr int kBlockRows = 64;  // input rows of a block
constexpr int kBlockTiles = 4;  // weight tiles of a block
constexpr int kThreads = 256;
constexpr int kSlicePlaces = kSliceK / 8;           // places of eight columns of a row's slice
constexpr int kPassRows = kThreads / kSlicePlaces;  // rows that the threads stage at once
constexpr int kStagedStride =
    kSliceK + 32;           // a row starts 64 bytes after a multiple of 128: no bank conflicts
constexpr int kStages = 3;  // slices of rows in shared memory
constexpr int kGroups = 4;  // groups of 8 rows of a warp

// Stages one slice of the (gathered) input rows, zeros outside; a thread has the same columns of several
// rows.
template <typename T>
__device__ inline void stage_slice(T* staged, const GemmArgs& args, int first_row, int slice) {
  const int column = static_cast<int>(threadIdx.x) % kSlicePlaces * 8;
  const int kk = slice * kSliceK + column;
  const int tap = kk / args.in_padded;
  const int channel = kk - tap * args.in_padded;
  const bool inside = kk < args.steps * kStepK && channel < args.in;
#pragma unroll
  for (int pass = 0; pass < kBlockRows / kPassRows; ++pass) {
    const int at = pass * kPassRows + static_cast<int>(threadIdx.x) / kSlicePlaces;
    const int row = first_row + at;
    const int source = row * args.stride + tap * args.dilation - args.history;
    const T* from = static_cast<const T*>(args.x) + source * args.x_stride;
    bool there = inside && row < args.rows;
    if (source < 0) {
      there = there && args.tail != nullptr;
      from = static_cast<const T*>(args.tail) + (args.history + source) * args.tail_stride;
    }
    T* to = staged + at * kStagedStride + column;
    if (!there || (args.in % 8 == 0 && reinterpret_cast<uintptr_t>(from) % 16 == 0)) {
      copy16(to, there ? static_cast<const void*>(from + channel) : args.x, there);
      continue;
    }
    for (int i = 0; i < 8; ++i) to[i] = channel + i < args.in ? from[channel + i] : narrow<T>(0.0f);
  }
}

// A warp's tile of weights of one slice.
struct SliceWeights {
  uint4 upper[kSliceSteps];
  uint4 lower[kSliceSteps];

  __device__ void load(const uint4* weight, int slice, int steps) {
#pragma unroll
    for (int i = 0; i < kSliceSteps; ++i) {
      const int step = slice * kSliceSteps + i;
      upper[i] = step < steps ? load_weight(weight + step * 64) : make_uint4(0, 0, 0, 0);
      lower[i] = step < steps ? load_weight(weight + step * 64 + 32) : make_uint4(0, 0, 0, 0);
    }
  }
};

template <typename T, typename Out>
__device__ inline void store_sum(const GemmArgs& args, int row, int n, float sum) {
  if (row >= args.rows || n >= args.n) return;
  if (args.bias != nullptr) {
    const float bias = args.bias[n % args.bias_period];
    sum = args.round_first ? rounded<Out>(sum) + rounded<Out>(bias) : sum + bias;
  }
  static_cast<Out*>(args.out)[row * args.out_stride + n] = narrow<Out>(sum);
}

// Block = 64 rows x 64 outputs; a warp has one weight tile and 32 rows. Rows travel two slices ahead, weights
// one.
template <typename T, typename Out>
__global__ void __launch_bounds__(kThreads, 2) gemm_kernel(const GemmArgs args) {
  T* staged = reinterpret_cast<T*>(dynamic_shared());  // [kStages, kBlockRows, kStagedStride]
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int tile = static_cast<int>(blockIdx.x) * kBlockTiles + warp % kBlockTiles;
  const int steps = tile < (args.n + kTile - 1) / kTile ? args.steps : 0;  // no weights past the last tile
  const int slices = (args.steps + kSliceSteps - 1) / kSliceSteps;
  const int first_row = static_cast<int>(blockIdx.y) * kBlockRows;
  const int warp_row = (warp / kBlockTiles) * 8 * kGroups;
  const uint4* weight = args.weight + static_cast<int64_t>(tile) * args.steps * 64 + lane;
  SliceWeights next;
  next.load(weight, 0, steps);
  wait_for_previous();
  allow_next();

#pragma unroll
  for (int slice = 0; slice < kStages - 1; ++slice) {
    if (slice < slices) stage_slice(staged + slice * kBlockRows * kStagedStride, args, first_row, slice);
    close_copies();
  }
  float total[kGroups][4] = {};
  for (int slice = 0; slice < slices; ++slice) {
    const SliceWeights now = next;
    await_copies<kStages - 2>();
    __syncthreads();  // the slice is staged by all, the one before it is consumed
    const int ahead = slice + kStages - 1;
    if (ahead < slices)
      stage_slice(staged + ahead % kStages * kBlockRows * kStagedStride, args, first_row, ahead);
    close_copies();
    if (slice + 1 < slices) next.load(weight, slice + 1, steps);
    const T* rows = staged + slice % kStages * kBlockRows * kStagedStride;
    float sum[kGroups][4] = {};
#pragma unroll
    for (int i = 0; i < kSliceSteps; ++i) {
      if (slice * kSliceSteps + i >= args.steps) break;
      const uint32_t front[4] = {now.upper[i].x, now.lower[i].x, now.upper[i].y, now.lower[i].y};
      const uint32_t back[4] = {now.upper[i].z, now.lower[i].z, now.upper[i].w, now.lower[i].w};
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const T* row = rows + (warp_row + group * 8 + lane / 4) * kStagedStride;
        const uint4 x = *reinterpret_cast<const uint4*>(row + i * kStepK + lane % 4 * 8);
        mma16816(sum[group], front, x.x, x.y, T{});
        mma16816(sum[group], back, x.z, x.w, T{});
      }
    }
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
#pragma unroll
      for (int i = 0; i < 4; ++i) total[group][i] += sum[group][i];
    }
  }

  const int n = tile * kTile + lane / 4;
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const int row = first_row + warp_row + group * 8 + lane % 4 * 2;
    store_sum<T, Out>(args, row, n, total[group][0]);
    store_sum<T, Out>(args, row + 1, n, total[group][1]);
    store_sum<T, Out>(args, row, n + 8, total[group][2]);
    store_sum<T, Out>(args, row + 1, n + 8, total[group][3]);
  }
}

}  // namespace

void gemm(LaunchQueue& queue, DType input, const GemmArgs& args) {
  const int tiles = (args.n + kTile - 1) / kTile;
  const Geometry geometry{.grid = dim3(static_cast<unsigned>((tiles + kBlockTiles - 1) / kBlockTiles),
                                       static_cast<unsigned>((args.rows + kBlockRows - 1) / kBlockRows)),
                          .block = kThreads,
                          .shared = static_cast<size_t>(kStages) * kBlockRows * kStagedStride * 2};
  const DType out = static_cast<DType>(args.type);
  if (input == DType::kBF16 && out == DType::kBF16) {
    launch(queue, gemm_kernel<bf16, bf16>, geometry, args);
  } else if (input == DType::kBF16 && out == DType::kF32) {
    launch(queue, gemm_kernel<bf16, float>, geometry, args);
  } else if (input == DType::kF16 && out == DType::kF16) {
    launch(queue, gemm_kernel<f16, f16>, geometry, args);
  } else {
    INVARIANT(input == DType::kF16 && out == DType::kF32, dtype_name(out), " from ", dtype_name(input));
    launch(queue, gemm_kernel<f16, float>, geometry, args);
  }
}

}  // namespace drama3
