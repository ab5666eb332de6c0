// The one row's experts: weights go to shared memory as soon as the experts are known, and the down
// projections learn that from a flag while gate and up still run.
#include "kernels/cuda/experts.cuh"
#include "kernels/cuda/gemv_row.cuh"
#include "lib/base/check.h"

namespace drama3 {
namespace {

constexpr int kWarps = 8;
constexpr int kWarpGroups = kMaxGroups / kWarps;  // groups of 128 columns of a warp
constexpr int kBlockBytes = kBlockWords * 16;

// Quantises eight values of a group that `Lanes` neighbouring lanes share, into F16 codes; returns the scale.
template <int Lanes, int Count>
__device__ inline float quantize_group(f16* out, const float (&x)[Count]) {
  float top = 1e-10f;
#pragma unroll
  for (int i = 0; i < Count; ++i) top = fmaxf(top, fabsf(x[i]));
  const float scale = lanes_max<Lanes>(top) / 448.0f;
  uint32_t pairs[Count / 2];
#pragma unroll
  for (int i = 0; i < Count / 2; ++i) {
    const uint32_t low = e4m3_code(x[2 * i] / scale), high = e4m3_code(x[2 * i + 1] / scale);
    pairs[i] = e4m3x2_to_f16x2(static_cast<uint16_t>(low | (high << 8)));
  }
#pragma unroll
  for (int i = 0; i < Count / 8; ++i) {
    reinterpret_cast<uint4*>(out)[i] =
        make_uint4(pairs[4 * i], pairs[4 * i + 1], pairs[4 * i + 2], pairs[4 * i + 3]);
  }
  return scale;
}

// Slices of the shared expert's down projection.
__host__ __device__ inline int shared_slices(const ExpertArgs& args) {
  return (args.shared_steps + kSliceSteps - 1) / kSliceSteps;
}

// The one row, quantised by all warps of the block but the first: F16 codes at xs, scales of the groups.
__device__ inline void quantize_row(f16* xs, float* scales, const bf16* in, int hidden) {
  const int thread = static_cast<int>(threadIdx.x) - 32;
  const int threads = static_cast<int>(blockDim.x) - 32;
  for (int first = thread / 32 * 32; first * 8 < hidden; first += threads) {
    const int i = 8 * (first + thread % 32);
    float x[8] = {};
    if (i < hidden) load8(x, in + i);
    __align__(16) f16 codes[8];
    const float scale = quantize_group<16>(codes, x);
    if (i < hidden) {
      *reinterpret_cast<uint4*>(xs + i) = *reinterpret_cast<const uint4*>(codes);
      if (i % kGroup == 0) scales[i / kGroup] = scale;
    }
  }
}

// The slot's activation, quantised by one warp: F16 codes at xs; lane 8 * group holds the group's scale.
__device__ inline float quantize_slot(f16* xs, const ExpertArgs& args, int slot) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int ffn = args.experts.ffn;
  float x[16] = {};
  if (lane * 16 < ffn) {
    const float* activation = args.activation + static_cast<int64_t>(slot) * ffn + lane * 16;
#pragma unroll
    for (int i = 0; i < 16; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(activation + i);
      x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
    }
  }
  __align__(16) f16 quantized[16];
  const float scale = quantize_group<8>(quantized, x);
  if (lane * 16 < ffn) {
    reinterpret_cast<uint4*>(xs + lane * 16)[0] = reinterpret_cast<const uint4*>(quantized)[0];
    reinterpret_cast<uint4*>(xs + lane * 16)[1] = reinterpret_cast<const uint4*>(quantized)[1];
  }
  __syncwarp();  // the slot's codes are staged
  return scale;
}

// Outputs of a tile of the one row, by slot and by slice of the shared expert.
struct DownSums {
  float routed[kMaxTopK][kTile];
  float shared[kMaxTopK][kTile];
};

// One slice's columns of the shared expert's activation, staged by the warp that alone reads them.
__device__ inline void stage_shared_slice(bf16* row, const ExpertArgs& args, int slice) {
  for (int i = static_cast<int>(threadIdx.x) % 32; i < kSliceK; i += 32) {
    const int column = slice * kSliceK + i;
    if (column >= args.shared_steps * kStepK) break;
    float a = 0.0f;
    if (column < args.shared_ffn) {
      a = silu(widen(args.shared_gate_row[column])) * widen(args.shared_up_row[column]);
    }
    row[column] = narrow<bf16>(a);
  }
  __syncwarp();  // the slice's columns are staged
}

// One slice of the shared expert's 16 outputs.
__device__ inline void down_shared_slice(DownSums& sums, bf16* row, const ExpertArgs& args, int slice,
                                         int tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint4* weight = args.shared_down + static_cast<int64_t>(tile) * args.shared_steps * 64 + lane;
  uint4 upper[kSliceSteps], lower[kSliceSteps];
#pragma unroll
  for (int i = 0; i < kSliceSteps; ++i) {
    const int step = slice * kSliceSteps + i;
    if (step < args.shared_steps) {
      upper[i] = load_weight(weight + step * 64);
      lower[i] = load_weight(weight + step * 64 + 32);
    }
  }
  stage_shared_slice(row, args, slice);
  float c[4] = {};
#pragma unroll
  for (int i = 0; i < kSliceSteps; ++i) {
    const int step = slice * kSliceSteps + i;
    if (step < args.shared_steps) step_product<bf16>(c, upper[i], lower[i], row, step);
  }
  keep_slice(sums.shared[0], slice, c);
}

// What the last step of a tile reads beside the sums, by the thread of an output.
struct RowTileInputs {
  float shared_gate = 0.0f;
  float residual = 0.0f;
};

__device__ inline RowTileInputs load_tile_inputs(const ExpertArgs& args, int tile) {
  const int thread = static_cast<int>(threadIdx.x);
  RowTileInputs inputs;
  if (thread >= kTile) return inputs;
  inputs.shared_gate = widen(args.shared_gate[0]);
  if (args.residual != nullptr) inputs.residual = widen(args.residual[tile * kTile + thread]);
  return inputs;
}

// Adds slots and slices in order and writes the tile's outputs; after the barrier that ends the sums.
__device__ inline void finish_row_tile(const DownSums& sums, const ExpertArgs& args, int tile,
                                       const RowTileInputs& inputs) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread >= kTile) return;
  const int n = tile * kTile + thread;
  const int slices = shared_slices(args);
  float routed = 0.0f, always = 0.0f;
  for (int slot = 0; slot < args.route.top_k; ++slot) routed += sums.routed[slot][thread];
  for (int slice = 0; slice < slices; ++slice) always += sums.shared[slice][thread];
  const float gated = rounded<bf16>(sigmoid(inputs.shared_gate) * rounded<bf16>(always));
  const bf16 out = narrow<bf16>(rounded<bf16>(routed) + gated);
  args.out[n] = out;
  if (args.residual != nullptr) args.residual[n] = narrow<bf16>(inputs.residual + widen(out));
}

struct GateUpShared {
  RoutedRow routed;
  float scale[kMaxGroups];          // of the row's groups
  float sum[kMaxGroups][2][kTile];  // of a group's gate and up products
};

// Blocks of 16 x 128 codes on their way into shared memory; every lane copies the words that it will read
// itself.
__device__ inline void copy_blocks(uint4* to, const uint4* from, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 4
  for (int i = 0; i < count * kBlockWords; i += 32) copy16(to + i + lane, from + i + lane, true);
  close_copies();
}

// The codes of one block, from shared memory.
__device__ inline void take_block(uint4 (&codes)[4], const uint4* block) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < 4; ++i) codes[i] = block[i * 32 + lane];
}

// Tells the down projections which experts the row has; by one warp, which has routed the row.
__device__ void publish_routing(const RoutedRow& routed, const ExpertArgs& args) {
  const int thread = static_cast<int>(threadIdx.x);
  __syncwarp();  // the slots are filled
  if (thread < args.route.top_k) {
    args.route.indices[thread] = routed.expert[thread];
    args.route.weights[thread] = slot_weight(routed, args.route, thread);
  }
  __syncwarp();  // all slots are written before the flag is
  if (thread == 0) raise_flag(args.routed);
}

// Scales of the warp's groups, (gate, up).
struct GroupScales {
  float value[kWarpGroups][2];
};

__device__ inline GroupScales load_scales(const PackedExperts& experts, int64_t expert, int tile) {
  const int warp = static_cast<int>(threadIdx.x) / 32, groups = experts.hidden / kGroup;
  const int64_t row = (expert * (experts.ffn / kGroup) + tile * kTile / kGroup) * groups;
  GroupScales scales;
#pragma unroll
  for (int i = 0; i < kWarpGroups; ++i) {
    const int group = min(warp * kWarpGroups + i, groups - 1);
    scales.value[i][0] = experts.gate_scale[row + group];
    scales.value[i][1] = experts.up_scale[row + group];
  }
  return scales;
}

// The warp's groups of the tile's gate and up rows: products with the quantised row, scaled.
__device__ void group_sums(GateUpShared& shared, const uint4* words, const f16* xs, const GroupScales& scales,
                           int groups) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  await_copies<0>();
#pragma unroll
  for (int i = 0; i < kWarpGroups; ++i) {
    const int group = warp * kWarpGroups + i;
    if (group >= groups) break;
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      uint4 codes[4];
      take_block(codes, words + (group * 2 + which) * kBlockWords);
      float p[4] = {};
      block_product(p, codes, xs + group * kGroup, lane < 4);
      if (lane % 4 == 0) {
        shared.sum[group][which][lane / 4] = p[0] * shared.scale[group] * scales.value[i][which];
        shared.sum[group][which][lane / 4 + 8] = p[2] * shared.scale[group] * scales.value[i][which];
      }
    }
  }
}

// Block = 16 gate and 16 up rows of one slot's expert. Every block takes the routing itself, no further than
// its slot so that it starts sooner; one more block, the first, takes all of it, tells the down projections
// and multiplies nothing. Small loads go before the weights': behind those they would queue.
__global__ void __launch_bounds__(kWarps * 32, 4) gate_up_row_kernel(const ExpertArgs args) {
  __shared__ __align__(16) GateUpShared shared;
  const PackedExperts& experts = args.experts;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const int tiles = experts.ffn / kTile, block = static_cast<int>(blockIdx.x) - 1;
  const bool tells = block < 0;
  const int slot = block / tiles, tile = block % tiles;
  const int groups = experts.hidden / kGroup;
  uint4* words = reinterpret_cast<uint4*>(dynamic_shared());  // [groups, (gate, up)] blocks
  f16* xs = reinterpret_cast<f16*>(words + groups * 2 * kBlockWords);
  wait_for_previous();
  allow_next();

  // The first warp routes while the others quantise the row.
  if (warp == 0) {
    route_warp(shared.routed, args.route, 0, tells ? args.route.top_k : slot + 1);
    if (tells) publish_routing(shared.routed, args);
  } else if (!tells) {
    quantize_row(xs, shared.scale, args.in, experts.hidden);
  }
  if (tells) return;
  __syncthreads();  // slots and row are staged
  const int64_t expert = shared.routed.expert[slot];
  const GroupScales scales = load_scales(experts, expert, tile);
  const int first = warp * kWarpGroups;
  if (first < groups) {
    const uint4* blocks = experts.gate_up + (expert * tiles + tile) * groups * 2 * kBlockWords;
    copy_blocks(words + first * 2 * kBlockWords, blocks + first * 2 * kBlockWords,
                2 * min(kWarpGroups, groups - first));
  }
  group_sums(shared, words, xs, scales, groups);
  __syncthreads();  // sums of all groups are written
  if (thread >= kTile) return;
  float gate = 0.0f, up = 0.0f;
  for (int group = 0; group < groups; ++group) {
    gate += shared.sum[group][0][thread];
    up += shared.sum[group][1][thread];
  }
  args.activation[static_cast<int64_t>(slot) * experts.ffn + tile * kTile + thread] = silu(gate) * up;
}

// The slot's 16 weighted outputs: weights travel while gate and up are still computed.
__device__ void down_slot(DownSums& sums, uint4* words, f16* xs, const ExpertArgs& args, int slot) {
  const PackedExperts& experts = args.experts;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int tile = static_cast<int>(blockIdx.x);
  const int groups = experts.ffn / kGroup;
  await_flag(args.routed);
  const int64_t expert = __ldcg(args.route.indices + slot);
  const float weight = __ldcg(args.route.weights + slot);
  float weight_scales[kMaxFfn / kGroup];
#pragma unroll
  for (int group = 0; group < kMaxFfn / kGroup; ++group) {
    weight_scales[group] =
        experts.down_scale[(expert * (experts.hidden / kGroup) + tile * kTile / kGroup) * groups +
                           min(group, groups - 1)];
  }
  copy_blocks(words, experts.down + (expert * (experts.hidden / kTile) + tile) * groups * kBlockWords,
              groups);
  wait_for_previous();
  allow_next();
  const float scale = quantize_slot(xs, args, slot);
  await_copies<0>();
  float top = 0.0f, bottom = 0.0f;
#pragma unroll
  for (int group = 0; group < kMaxFfn / kGroup; ++group) {
    if (group >= groups) break;
    uint4 codes[4];
    take_block(codes, words + group * kBlockWords);
    float p[4] = {};
    block_product(p, codes, xs + group * kGroup, lane < 4);
    const float group_scale = __shfl_sync(kAllLanes, scale, group * 8);
    top += p[0] * group_scale * weight_scales[group];
    bottom += p[2] * group_scale * weight_scales[group];
  }
  if (lane % 4 == 0) {
    sums.routed[slot][lane / 4] = rounded<bf16>(top * weight);
    sums.routed[slot][lane / 4 + 8] = rounded<bf16>(bottom * weight);
  }
}

// Block = 16 outputs of the one row: a warp a slot, then a warp a slice of the shared expert.
__global__ void __launch_bounds__(kMaxTopK * 32) down_row_kernel(const ExpertArgs args) {
  __shared__ DownSums sums;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const int tile = static_cast<int>(blockIdx.x);
  const int top_k = args.route.top_k, groups = args.experts.ffn / kGroup;
  uint4* words = reinterpret_cast<uint4*>(dynamic_shared());  // [top_k, groups] blocks
  f16* slots = reinterpret_cast<f16*>(words + top_k * groups * kBlockWords);
  bf16* shared_row = reinterpret_cast<bf16*>(slots + top_k * args.experts.ffn);
  // What the end needs was written before the routing: it is loaded before the weights crowd the way.
  const RowTileInputs inputs = load_tile_inputs(args, tile);
  if (warp < top_k) {
    down_slot(sums, words + warp * groups * kBlockWords, slots + warp * args.experts.ffn, args, warp);
  } else {
    down_shared_slice(sums, shared_row, args, warp - top_k, tile);
    wait_for_previous();
    allow_next();
  }
  __syncthreads();  // all slots and slices are written
  // The last block takes the flag down: all have seen it. A thread of another warp counts, so that the
  // outputs do not wait for the count.
  if (thread == static_cast<int>(blockDim.x) - 1 &&
      atomicAdd(args.routed + 1, 1) == static_cast<int>(gridDim.x) - 1) {
    args.routed[0] = 0;
    args.routed[1] = 0;
  }
  finish_row_tile(sums, args, tile, inputs);
}

}  // namespace

void experts_gate_up_row(LaunchQueue& queue, const ExpertArgs& args) {
  require_sizes(args);
  const PackedExperts& experts = args.experts;
  launch(queue, gate_up_row_kernel,
         {.grid = dim3(static_cast<unsigned>(experts.ffn / kTile * args.route.top_k + 1)),
          .block = kWarps * 32,
          .shared = static_cast<size_t>(experts.hidden / kGroup) * 2 * kBlockBytes +
                    static_cast<size_t>(experts.hidden) * sizeof(f16)},
         args);
}

void experts_down_row(LaunchQueue& queue, const ExpertArgs& args) {
  require_sizes(args);
  INVARIANT(shared_slices(args) + args.route.top_k <= kMaxTopK, "shared expert of ", args.shared_ffn);
  const auto top_k = static_cast<size_t>(args.route.top_k);
  const auto ffn = static_cast<size_t>(args.experts.ffn);
  launch(queue, down_row_kernel,
         {.grid = dim3(static_cast<unsigned>(args.experts.hidden / kTile)),
          .block = static_cast<unsigned>(args.route.top_k + shared_slices(args)) * 32,
          .shared = top_k * (ffn / kGroup * kBlockBytes + ffn * sizeof(f16)) +
                    static_cast<size_t>(args.shared_steps) * kStepK * sizeof(bf16)},
         args);
}

}  // namespace drama3
