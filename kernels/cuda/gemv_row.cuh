// What the one-row projections share: staging of the row, products of a step, sums and stores of a finished
// unit of tiles.
#pragma once

#include <type_traits>

#include "kernels/cuda/common/rows.cuh"
#include "kernels/cuda/linear.cuh"

namespace drama3 {

// Writes value as element i of an array of a stored type.
__device__ inline void store_as(void* out, int type, int64_t i, float value) {
  if (type == static_cast<int>(DType::kF32)) {
    static_cast<float*>(out)[i] = value;
  } else if (type == static_cast<int>(DType::kBF16)) {
    static_cast<bf16*>(out)[i] = narrow<bf16>(value);
  } else {
    static_cast<f16*>(out)[i] = narrow<f16>(value);
  }
}

// The row that the gather finds; `keep` also copies it.
template <typename T>
__device__ inline const T* gathered_row(const RowGather& gather, int dim, bool keep) {
  const int id = *gather.id;
  const bf16* row = id >= 0 ? gather.text.row(clamp_index(id, gather.text_rows))
                            : gather.table.row(clamp_index(*gather.code, gather.entries));
  if (keep && threadIdx.x < kReduceThreads) {
#pragma unroll 1
    for (int i = 8 * static_cast<int>(threadIdx.x); i < dim; i += 8 * kReduceThreads) {
      *reinterpret_cast<uint4*>(gather.copy + i) = *reinterpret_cast<const uint4*>(row + i);
    }
  }
  return reinterpret_cast<const T*>(row);
}

// A part of gated heads at xs: a warp takes two heads at a time, both loaded before the first is computed.
__device__ inline void stage_gated(bf16* xs, const NormPart& norm, bool keep) {
  constexpr int kBatch = 2;
  const int warps = static_cast<int>(blockDim.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int heads = norm.dim / kGatedWidth;
#pragma unroll 1
  for (int first = static_cast<int>(threadIdx.x) / 32; first < heads; first += kBatch * warps) {
    GatedLane lanes[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int at = min(first + i * warps, heads - 1) * kGatedWidth;
      lanes[i] = load_gated(static_cast<const bf16*>(norm.in) + at, static_cast<const bf16*>(norm.z) + at,
                            norm.weight);
    }
    uint2 out[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) out[i] = gated_norm_lane(lanes[i], norm.eps);
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (first + i * warps >= heads) continue;
      const int at = (first + i * warps) * kGatedWidth;
      reinterpret_cast<uint2*>(xs + at)[lane] = out[i];
      if (keep) reinterpret_cast<uint2*>(static_cast<bf16*>(norm.copy) + at)[lane] = out[i];
    }
  }
}

// The normalised parts at xs, one after the other, each by kReduceThreads threads of its own, so many must
// the block have. Ends without a barrier.
template <typename T>
__device__ inline void stage_parts(T* xs, const GemvArgs& args, bool keep) {
  const int part = min(static_cast<int>(threadIdx.x) / kReduceThreads, args.part_count - 1);
  const NormPart& norm = args.parts[part];
  const T* in = static_cast<const T*>(norm.in);
  if (part == 0 && args.gather.id != nullptr) in = gathered_row<T>(args.gather, norm.dim, keep);
  rms_norm_row(xs + (part == 0 ? 0 : args.parts[0].dim), in, norm.weight, norm.dim, norm.eps,
               keep ? static_cast<T*>(norm.copy) : nullptr, part);
}

// Calls the norms' gains into the second cache level: they were last read a frame ago.
__device__ inline void prefetch_gains(const GemvArgs& args) {
  constexpr int kLine = 32;  // floats
#pragma unroll 1
  for (int part = 0; part < args.part_count; ++part) {
    const NormPart& norm = args.parts[part];
    const int width = norm.z != nullptr ? kGatedWidth : norm.dim;
    const int at = static_cast<int>(threadIdx.x) * kLine;
    if (at < width) prefetch_line(norm.weight + at);
  }
}

// Fills xs[0, padded) with the input row, zeros past k; `keep` also writes the copies of parts.
template <typename T>
__device__ void stage_row(T* xs, const GemvArgs& args, bool keep) {
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int padded = args.steps * kStepK;
  if (args.part_count > 0 && args.parts[0].z != nullptr) {
    if constexpr (std::is_same_v<T, bf16>) stage_gated(xs, args.parts[0], keep);
  } else if (args.part_count > 0) {
    stage_parts(xs, args, keep);
  } else if (args.k % 8 == 0) {
    const T* x = static_cast<const T*>(args.x);
#pragma unroll 2
    for (int i = 8 * thread; i < args.k; i += 8 * threads) {
      *reinterpret_cast<uint4*>(xs + i) = *reinterpret_cast<const uint4*>(x + i);
    }
  } else {
#pragma unroll 1
    for (int i = thread; i < args.k; i += threads) xs[i] = static_cast<const T*>(args.x)[i];
  }
#pragma unroll 1
  for (int i = args.k + thread; i < padded; i += threads) xs[i] = narrow<T>(0.0f);
}

// One step of 32 columns of the staged row: two products; only column 0 of the right operand is the row.
template <typename T>
__device__ inline void step_product(float (&c)[4], const uint4& upper, const uint4& lower, const T* xs,
                                    int step) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  uint4 x = make_uint4(0, 0, 0, 0);
  if (lane < 4) x = *reinterpret_cast<const uint4*>(xs + step * kStepK + lane * 8);
  const uint32_t first[4] = {upper.x, lower.x, upper.y, lower.y};
  mma16816(c, first, x.x, x.y, T{});
  const uint32_t second[4] = {upper.z, lower.z, upper.w, lower.w};
  mma16816(c, second, x.z, x.w, T{});
}

// A slice's sums of the 16 outputs, at partial[slice * kTile + output].
__device__ inline void keep_slice(float* partial, int slice, const float (&c)[4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane % 4 != 0) return;
  partial[slice * kTile + lane / 4] = c[0];
  partial[slice * kTile + lane / 4 + 8] = c[2];
}

// One output's slices, added in ascending order.
__device__ inline float sum_slices(const float* partial, int slices, int output) {
  float sum = 0.0f;
#pragma unroll 8  // so many loads in flight
  for (int slice = 0; slice < slices; ++slice) sum += partial[slice * kTile + output];
  return sum;
}

// Stores the outputs of one unit, by one warp: from partial sums of one tile, or of the gate's tile and then
// the up tile, after the barrier that ends the unit's sums.
template <typename T>
__device__ void finish_unit(const GemvArgs& args, const float* partial, int unit, int slices) {
  const int lane = static_cast<int>(threadIdx.x) % 32, output = lane % kTile, tile = lane / kTile;
  if (tile >= args.tiles_of_unit()) return;
  int which = tile;  // segment
  if (args.swiglu == nullptr) {
#pragma unroll 1
    while (which + 1 < args.segment_count && unit >= args.segments[which + 1].first_tile) ++which;
    unit -= args.segments[which].first_tile;
  }
  const GemvSegment& segment = args.segments[which];
  const int n = unit * kTile + output;
  const bool there = n < segment.n;
  float sum = sum_slices(partial + tile * slices * kTile, slices, output);
  if (segment.bias != nullptr && there) sum += segment.bias[n];
  if (there) store_as(segment.out, segment.type, n, sum);
  if (args.swiglu != nullptr) {
    const float up = __shfl_sync(kAllLanes, sum, output + kTile);
    if (tile == 0 && there) {
      static_cast<T*>(args.swiglu)[n] = narrow<T>(silu(rounded<T>(sum)) * rounded<T>(up));
    }
  } else if (segment.residual != nullptr && there) {
    T* residual = static_cast<T*>(segment.residual) + n;
    *residual = narrow<T>(widen(*residual) + rounded<T>(sum));
  }
}

// First word of a tile: tile `which` of the unit, counted over all segments.
__device__ inline const uint4* tile_weight(const GemvArgs& args, int unit, int which) {
  int segment = which;
  if (args.swiglu == nullptr) {
#pragma unroll 1
    while (segment + 1 < args.segment_count && unit >= args.segments[segment + 1].first_tile) ++segment;
    unit -= args.segments[segment].first_tile;
  }
  return args.segments[segment].weight + static_cast<int64_t>(unit) * args.steps * 64;
}

}  // namespace drama3
