// Projections and convolutions of many rows on tensor cores, with the sums of gemv.
#include "kernels/cuda/common/rows.cuh"
#include "kernels/cuda/linear.cuh"
#include "lib/base/check.h"

namespace drama3 {
namespace {

constexpr int kBlockRows = 64;  // input rows of a block
constexpr int kBlockTiles = 4;  // weight tiles of a block
constexpr int kChunkSteps = 4;  // steps staged at a time; two chunks make a slice
constexpr int kChunkK = kChunkSteps * kStepK;
constexpr int kStagedStride =
    kChunkK + 32;           // a row starts 64 bytes after a multiple of 128: no bank conflicts
constexpr int kGroups = 4;  // groups of 8 rows of a warp

// Eight elements from column kk of the (gathered) input row, zeros outside.
template <typename T>
__device__ inline uint4 gather8(const GemmArgs& args, int row, int kk) {
  union {
    uint4 bits;
    T values[8];
  } word;
  word.bits = make_uint4(0, 0, 0, 0);
  if (row >= args.rows) return word.bits;
  const int tap = kk / args.in_padded;
  const int channel = kk - tap * args.in_padded;
  if (channel >= args.in) return word.bits;
  const int source = row * args.stride + tap * args.dilation - args.history;
  const T* from = static_cast<const T*>(args.x) + source * args.x_stride;
  if (source < 0) {
    if (args.tail == nullptr) return word.bits;
    from = static_cast<const T*>(args.tail) + (args.history + source) * args.tail_stride;
  }
  if (args.in % 8 == 0 && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
    return *reinterpret_cast<const uint4*>(from + channel);
  }
  for (int i = 0; i < 8 && channel + i < args.in; ++i) word.values[i] = from[channel + i];
  return word.bits;
}

template <typename T, typename Out>
__device__ inline void store_sum(const GemmArgs& args, int row, int n, float sum) {
  if (row >= args.rows || n >= args.n) return;
  if (args.bias != nullptr) {
    const float bias = args.bias[n % args.bias_period];
    sum = args.round_first ? rounded<Out>(sum) + rounded<Out>(bias) : sum + bias;
  }
  static_cast<Out*>(args.out)[row * args.out_stride + n] = narrow<Out>(sum);
}

// Block = 64 rows x 64 outputs; a warp has one weight tile and 32 rows.
template <typename T, typename Out>
__global__ void __launch_bounds__(256) gemm_kernel(const GemmArgs args) {
  __shared__ __align__(16) T staged[kBlockRows * kStagedStride];
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  const int tile = static_cast<int>(blockIdx.x) * kBlockTiles + warp % kBlockTiles;
  const int tiles = (args.n + kTile - 1) / kTile;
  const int first_row = static_cast<int>(blockIdx.y) * kBlockRows;
  const int warp_row = (warp / kBlockTiles) * 8 * kGroups;
  const uint4* weight = args.weight + static_cast<int64_t>(tile) * args.steps * 64 + lane;
  wait_for_previous();
  allow_next();

  float total[kGroups][4] = {};
  float slice[kGroups][4] = {};
  for (int first = 0; first < args.steps; first += kChunkSteps) {
    uint4 upper[kChunkSteps], lower[kChunkSteps];
#pragma unroll
    for (int i = 0; i < kChunkSteps; ++i) {
      if (tile < tiles && first + i < args.steps) {
        upper[i] = load_weight(weight + (first + i) * 64);
        lower[i] = load_weight(weight + (first + i) * 64 + 32);
      } else {
        upper[i] = lower[i] = make_uint4(0, 0, 0, 0);
      }
    }
    __syncthreads();  // the chunk before is consumed
    for (int i = thread; i < kBlockRows * kChunkK / 8; i += 256) {
      const int row = i / (kChunkK / 8);
      const int column = i % (kChunkK / 8) * 8;
      const int kk = first * kStepK + column;
      const bool inside = kk < args.steps * kStepK;
      *reinterpret_cast<uint4*>(staged + row * kStagedStride + column) =
          inside ? gather8<T>(args, first_row + row, kk) : make_uint4(0, 0, 0, 0);
    }
    __syncthreads();  // the chunk is staged
#pragma unroll
    for (int i = 0; i < kChunkSteps; ++i) {
      if (first + i >= args.steps) break;
      const uint32_t front[4] = {upper[i].x, lower[i].x, upper[i].y, lower[i].y};
      const uint32_t back[4] = {upper[i].z, lower[i].z, upper[i].w, lower[i].w};
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const T* row = staged + (warp_row + group * 8 + lane / 4) * kStagedStride;
        const uint4 x = *reinterpret_cast<const uint4*>(row + i * kStepK + lane % 4 * 8);
        mma16816(slice[group], front, x.x, x.y, T{});
        mma16816(slice[group], back, x.z, x.w, T{});
      }
    }
    const int done = first + kChunkSteps;
    if (done % kSliceSteps == 0 || done >= args.steps) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          total[group][i] += slice[group][i];
          slice[group][i] = 0.0f;
        }
      }
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
                          .block = 256};
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
