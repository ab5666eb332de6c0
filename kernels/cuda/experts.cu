// Routed FP8 experts of many rows: gate, up and SwiGLU, then down and the weighted sum.
#include "kernels/cuda/experts.cuh"
#include "lib/base/check.h"

namespace drama3 {
namespace {

constexpr int kColumns = 8;  // rows that one tensor-core tile takes
constexpr int kGateUpThreads = 256;
constexpr int kDownThreads = 128;

__device__ inline void load_block(uint4 (&codes)[4], const uint4* block) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < 4; ++i) codes[i] = load_weight(block + i * 32 + lane);
}

// Eight e4m3 codes as F16.
__device__ inline uint4 widen_codes(const uint8_t* codes) {
  const uint2 word = *reinterpret_cast<const uint2*>(codes);
  return make_uint4(
      e4m3x2_to_f16x2(static_cast<uint16_t>(word.x)), e4m3x2_to_f16x2(static_cast<uint16_t>(word.x >> 16)),
      e4m3x2_to_f16x2(static_cast<uint16_t>(word.y)), e4m3x2_to_f16x2(static_cast<uint16_t>(word.y >> 16)));
}

// Columns of one pass: x as F16 codes [columns, n + 8], scales, and sums by group.
struct GateUpShared {
  float scale[kColumns][kMaxGroups];
  float sum[kMaxGroups][2][kTile][kColumns];
  int pair[kColumns];
};

// Rows of the next pairs of this block's expert.
__device__ void stage_pairs(GateUpShared& shared, f16* xs, const ExpertArgs& args, int first, int columns) {
  const int thread = static_cast<int>(threadIdx.x);
  const int hidden = args.experts.hidden;
  const int stride = hidden + 8;
  if (thread < kColumns) shared.pair[thread] = thread < columns ? args.list.pairs[first + thread] : 0;
  __syncthreads();  // pairs are read
  for (int i = thread; i < kColumns * hidden / 8; i += kGateUpThreads) {
    const int column = i / (hidden / 8), at = i % (hidden / 8) * 8;
    uint4 x = make_uint4(0, 0, 0, 0);
    if (column < columns) x = widen_codes(args.codes.row(shared.pair[column] / args.route.top_k) + at);
    *reinterpret_cast<uint4*>(xs + column * stride + at) = x;
  }
  for (int i = thread; i < kColumns * kMaxGroups; i += kGateUpThreads) {
    const int column = i / kMaxGroups, group = i % kMaxGroups;
    if (column < columns && group < hidden / kGroup) {
      shared.scale[column][group] = args.scales.row(shared.pair[column] / args.route.top_k)[group];
    }
  }
}

// Block = 16 gate and 16 up rows of one expert; its pairs eight at a time.
__global__ void __launch_bounds__(kGateUpThreads, 2) gate_up_rows_kernel(const ExpertArgs args) {
  __shared__ __align__(16) GateUpShared shared;
  f16* xs = reinterpret_cast<f16*>(dynamic_shared());
  const PackedExperts& experts = args.experts;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int tile = static_cast<int>(blockIdx.x), expert = static_cast<int>(blockIdx.y);
  const int groups = experts.hidden / kGroup;
  wait_for_previous();
  allow_next();
  int first = args.list.offsets[expert];
  const int end = args.list.offsets[expert + 1];
  if (first == end) return;
  const uint4* blocks = experts.gate_up + (static_cast<int64_t>(expert) * (experts.ffn / kTile) + tile) *
                                              groups * 2 * kBlockWords;
  uint4 gate[2][4], up[2][4];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int group = warp * 2 + i;
    if (group < groups) {
      load_block(gate[i], blocks + group * 2 * kBlockWords);
      load_block(up[i], blocks + (group * 2 + 1) * kBlockWords);
    }
  }
  const int64_t scale_row =
      (static_cast<int64_t>(expert) * (experts.ffn / kGroup) + tile * kTile / kGroup) * groups;

  for (; first < end; first += kColumns) {
    const int columns = min(kColumns, end - first);
    stage_pairs(shared, xs, args, first, columns);
    __syncthreads();  // columns are staged
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int group = warp * 2 + i;
      if (group >= groups) break;
      const f16* x = xs + lane / 4 * (experts.hidden + 8) + group * kGroup;
      float p[2][4] = {};
      block_product(p[0], gate[i], x, true);
      block_product(p[1], up[i], x, true);
      const float scales[2] = {args.experts.gate_scale[scale_row + group],
                               args.experts.up_scale[scale_row + group]};
#pragma unroll
      for (int which = 0; which < 2; ++which) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int c = lane % 4 * 2 + j % 2;
          if (c < columns) {
            shared.sum[group][which][lane / 4 + j / 2 * 8][c] =
                p[which][j] * shared.scale[c][group] * scales[which];
          }
        }
      }
    }
    __syncthreads();  // sums of all groups are written
    const int row = thread % kTile, c = thread / kTile;
    if (c < columns) {
      float g = 0.0f, u = 0.0f;
      for (int group = 0; group < groups; ++group) {
        g += shared.sum[group][0][row][c];
        u += shared.sum[group][1][row][c];
      }
      const int pair = shared.pair[c];
      args.activation[static_cast<int64_t>(pair) * experts.ffn + tile * kTile + row] = silu(g) * u;
    }
    __syncthreads();  // sums and pairs are used
  }
}

// Block = 16 outputs of one expert; a warp takes one group of 128 columns; pairs eight at a time.
__global__ void __launch_bounds__(kDownThreads) down_rows_kernel(const ExpertArgs args) {
  constexpr int kStride = kMaxFfn + 8;
  __shared__ __align__(16) f16 xs[kColumns * kStride];
  __shared__ float sum[kMaxFfn / kGroup][kTile][kColumns];
  __shared__ int pair[kColumns];
  const PackedExperts& experts = args.experts;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int tile = static_cast<int>(blockIdx.x), expert = static_cast<int>(blockIdx.y);
  const int groups = experts.ffn / kGroup;
  wait_for_previous();
  allow_next();
  const int end = args.list.offsets[expert + 1];
  int first = args.list.offsets[expert];
  if (first == end) return;
  const uint4* blocks =
      experts.down + (static_cast<int64_t>(expert) * (experts.hidden / kTile) + tile) * groups * kBlockWords;
  uint4 codes[4];
  if (warp < groups) load_block(codes, blocks + warp * kBlockWords);
  const float* scales =
      experts.down_scale +
      (static_cast<int64_t>(expert) * (experts.hidden / kGroup) + tile * kTile / kGroup) * groups;
  for (; first < end; first += kColumns) {
    const int columns = min(kColumns, end - first);
    if (thread < kColumns) pair[thread] = thread < columns ? args.list.pairs[first + thread] : 0;
    __syncthreads();  // pairs are read
    for (int i = thread; i < kColumns * experts.ffn / 8; i += kDownThreads) {
      const int column = i / (experts.ffn / 8), at = i % (experts.ffn / 8) * 8;
      *reinterpret_cast<uint4*>(xs + column * kStride + at) =
          column < columns ? widen_codes(args.codes.row(pair[column]) + at) : make_uint4(0, 0, 0, 0);
    }
    __syncthreads();  // columns are staged
    if (warp < groups) {
      float p[4] = {};
      block_product(p, codes, xs + lane / 4 * kStride + warp * kGroup, true);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int c = lane % 4 * 2 + j % 2;
        if (c < columns) {
          sum[warp][lane / 4 + j / 2 * 8][c] = p[j] * args.scales.row(pair[c])[warp] * scales[warp];
        }
      }
    }
    __syncthreads();  // sums of all groups are written
    const int row = thread % kTile, c = thread / kTile;
    if (c < columns) {
      float total = 0.0f;
      for (int group = 0; group < groups; ++group) total += sum[group][row][c];
      const float weight = args.weights.row(pair[c] / args.route.top_k)[pair[c] % args.route.top_k];
      args.weighted[static_cast<int64_t>(pair[c]) * experts.hidden + tile * kTile + row] =
          narrow<bf16>(total * weight);
    }
    __syncthreads();  // sums and pairs are used
  }
}

__global__ void __launch_bounds__(256)
    combine_slots_kernel(const Rows<bf16> out, const bf16* weighted, int rows, int top_k, int hidden) {
  wait_for_previous();
  allow_next();
  const int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y);
  if (n >= hidden || row >= rows) return;
  float sum = 0.0f;
  for (int slot = 0; slot < top_k; ++slot) {
    sum += widen(weighted[(static_cast<int64_t>(row) * top_k + slot) * hidden + n]);
  }
  out.row(row)[n] = narrow<bf16>(sum);
}

}  // namespace

void experts_gate_up_rows(LaunchQueue& queue, const ExpertArgs& args) {
  require_sizes(args);
  launch(queue, gate_up_rows_kernel,
         {.grid = dim3(static_cast<unsigned>(args.experts.ffn / kTile),
                       static_cast<unsigned>(args.experts.experts)),
          .block = kGateUpThreads,
          .shared = kColumns * static_cast<size_t>(args.experts.hidden + 8) * sizeof(f16)},
         args);
}

void experts_down_rows(LaunchQueue& queue, const ExpertArgs& args) {
  require_sizes(args);
  launch(queue, down_rows_kernel,
         {.grid = dim3(static_cast<unsigned>(args.experts.hidden / kTile),
                       static_cast<unsigned>(args.experts.experts)),
          .block = kDownThreads},
         args);
}

void combine_slots(LaunchQueue& queue, const Rows<bf16>& out, const bf16* weighted, int rows, int top_k,
                   int hidden) {
  launch(queue, combine_slots_kernel,
         {.grid = dim3(static_cast<unsigned>((hidden + 255) / 256), static_cast<unsigned>(rows))}, out,
         weighted, rows, top_k, hidden);
}

}  // namespace drama3
