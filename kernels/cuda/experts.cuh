// What the experts' kernels share: products of a block of FP8 codes, quantisation of a row, and the last
// steps of the one row's mixture.
#pragma once

#include "kernels/cuda/gemv_row.cuh"
#include "kernels/cuda/route.cuh"
#include "lib/base/check.h"

namespace drama3 {

constexpr int kMaxGroups = kMaxHidden / kGroup;

// p += codes (16 x 128 block, this lane's four words) times 128 columns of `x` (this lane's column, F16).
__device__ inline void block_product(float (&p)[4], const uint4 (&codes)[4], const f16* x, bool column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint4 low = make_uint4(0, 0, 0, 0), high = low;
    if (column) {
      const uint4* at = reinterpret_cast<const uint4*>(x + half * 64 + lane % 4 * 16);
      low = at[0];
      high = at[1];
    }
    const uint32_t b[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    const uint4& upper = codes[half * 2];
    const uint4& lower = codes[half * 2 + 1];
    const uint32_t top[4] = {upper.x, upper.y, upper.z, upper.w};
    const uint32_t bottom[4] = {lower.x, lower.y, lower.z, lower.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint32_t a[4] = {e4m3x2_to_f16x2(static_cast<uint16_t>(top[j])),
                             e4m3x2_to_f16x2(static_cast<uint16_t>(bottom[j])),
                             e4m3x2_to_f16x2(static_cast<uint16_t>(top[j] >> 16)),
                             e4m3x2_to_f16x2(static_cast<uint16_t>(bottom[j] >> 16))};
      mma16816(p, a, b[2 * j], b[2 * j + 1], f16{});
    }
  }
}

__device__ inline void load_block(uint4 (&codes)[4], const uint4* block) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < 4; ++i) codes[i] = load_weight(block + i * 32 + lane);
}

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

// Eight e4m3 codes as F16.
__device__ inline uint4 widen_codes(const uint8_t* codes) {
  const uint2 word = *reinterpret_cast<const uint2*>(codes);
  return make_uint4(
      e4m3x2_to_f16x2(static_cast<uint16_t>(word.x)), e4m3x2_to_f16x2(static_cast<uint16_t>(word.x >> 16)),
      e4m3x2_to_f16x2(static_cast<uint16_t>(word.y)), e4m3x2_to_f16x2(static_cast<uint16_t>(word.y >> 16)));
}

// Slices of the shared expert's down projection.
__host__ __device__ inline int shared_slices(const ExpertArgs& args) {
  return (args.shared_steps + kSliceSteps - 1) / kSliceSteps;
}

// The sizes that the kernels are made for.
inline void require_sizes(const ExpertArgs& args) {
  const PackedExperts& experts = args.experts;
  INVARIANT(experts.hidden % kGroup == 0 && experts.hidden <= kMaxHidden && experts.ffn % kGroup == 0 &&
                experts.ffn <= kMaxFfn && args.route.top_k <= kMaxTopK,
            "experts of ", experts.hidden, " x ", experts.ffn, ", top ", args.route.top_k);
}

// The one row, quantised by the whole warps of the block from first_thread on: F16 codes at xs, scales of the
// groups.
__device__ inline void quantize_row(f16* xs, float* scales, const bf16* in, int hidden,
                                    int first_thread = 0) {
  const int thread = static_cast<int>(threadIdx.x) - first_thread;
  const int threads = static_cast<int>(blockDim.x) - first_thread;
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

}  // namespace drama3
