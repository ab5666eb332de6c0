// Eight neighbouring elements of a row at a time, and the norms of one row that several kernels share.
#pragma once

#include "kernels/cuda/common/args.cuh"
#include "kernels/cuda/common/reduce.cuh"

namespace drama3 {

// The entry of a table that a code or id stands for.
__device__ inline int64_t clamp_index(int64_t value, int64_t count) {
  return value < 0 ? 0 : value < count ? value : count - 1;
}

// in[0..8) widened; `in` is aligned to 8 elements.
__device__ inline void load8(float (&out)[8], const float* in) {
  const float4 low = reinterpret_cast<const float4*>(in)[0];
  const float4 high = reinterpret_cast<const float4*>(in)[1];
  out[0] = low.x, out[1] = low.y, out[2] = low.z, out[3] = low.w;
  out[4] = high.x, out[5] = high.y, out[6] = high.z, out[7] = high.w;
}
template <typename T>
__device__ inline void load8(float (&out)[8], const T* in) {
  union {
    uint4 bits;
    T values[8];
  } word;
  word.bits = *reinterpret_cast<const uint4*>(in);
#pragma unroll
  for (int i = 0; i < 8; ++i) out[i] = widen(word.values[i]);
}

// Writes in[0..8) rounded to T; `out` is aligned to 8 elements.
__device__ inline void store8(float* out, const float (&in)[8]) {
  reinterpret_cast<float4*>(out)[0] = make_float4(in[0], in[1], in[2], in[3]);
  reinterpret_cast<float4*>(out)[1] = make_float4(in[4], in[5], in[6], in[7]);
}
template <typename T>
__device__ inline void store8(T* out, const float (&in)[8]) {
  union {
    uint4 bits;
    T values[8];
  } word;
#pragma unroll
  for (int i = 0; i < 8; ++i) word.values[i] = narrow<T>(in[i]);
  *reinterpret_cast<uint4*>(out) = word.bits;
}

// One normalised value: F16 rows round before the gain, as the codec's definition has it; others once.
template <typename T>
__device__ inline float norm_value(float x, float scale, float weight) {
  return x * scale * weight;
}
template <>
__device__ inline float norm_value<f16>(float x, float scale, float weight) {
  return rounded<f16>(x * scale) * weight;
}

// out = in * rsqrt(mean(in^2) + eps) * weight by the kReduceThreads threads of `group`; dim is a multiple
// of 8. `copy`, if not null, gets the same row. All threads of the block call it, the groups with rows of
// their own. Ends without a barrier.
template <typename T>
__device__ inline void rms_norm_row(T* out, const T* in, const float* weight, int dim, float eps,
                                    T* copy = nullptr, int group = 0) {
  const int thread = static_cast<int>(threadIdx.x) - group * kReduceThreads;
  const int first = 8 * thread;
  const bool holds = thread >= 0 && thread < kReduceThreads && first < dim;
  float kept[8], gain[8];  // of the first eight columns of the thread: read once, gains beside the row
  float sum = 0.0f;
  if (holds) {
    load8(kept, in + first);
    load8(gain, weight + first);
#pragma unroll
    for (int j = 0; j < 8; ++j) sum = fmaf(kept[j], kept[j], sum);
#pragma unroll 1
    for (int i = first + 8 * kReduceThreads; i < dim; i += 8 * kReduceThreads) {
      float x[8];
      load8(x, in + i);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum = fmaf(x[j], x[j], sum);
    }
  }
  const float scale = rsqrtf(group_sum(sum) / static_cast<float>(dim) + eps);
  if (!holds) return;
#pragma unroll 1
  for (int i = first; i < dim; i += 8 * kReduceThreads) {
    if (i > first) {
      load8(kept, in + i);
      load8(gain, weight + i);
    }
    float y[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) y[j] = norm_value<T>(kept[j], scale, gain[j]);
    store8(out + i, y);
    if (copy != nullptr) store8(copy + i, y);
  }
}

constexpr int kGatedWidth = 128;  // columns of one head of a gated norm

// One lane's four columns of a head's gated norm, loaded before any of several heads is computed.
struct GatedLane {
  uint2 in, z;
  float4 weight;
};

__device__ inline GatedLane load_gated(const bf16* in, const bf16* z, const float* weight) {
  const int at = static_cast<int>(threadIdx.x) % 32 * 4;
  return {*reinterpret_cast<const uint2*>(in + at), *reinterpret_cast<const uint2*>(z + at),
          *reinterpret_cast<const float4*>(weight + at)};
}

// in * rsqrt(mean(in^2) + eps) * weight * silu(z) by one warp: this lane's four columns, rounded.
__device__ inline uint2 gated_norm_lane(const GatedLane& lane, float eps) {
  const auto unpack = [](float(&out)[4], const uint2& bits) {
    out[0] = __uint_as_float(bits.x << 16), out[1] = __uint_as_float(bits.x & 0xffff0000u);
    out[2] = __uint_as_float(bits.y << 16), out[3] = __uint_as_float(bits.y & 0xffff0000u);
  };
  float x[4], z[4];
  unpack(x, lane.in);
  unpack(z, lane.z);
  const float weight[4] = {lane.weight.x, lane.weight.y, lane.weight.z, lane.weight.w};
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i) sum = fmaf(x[i], x[i], sum);
  const float scale = rsqrtf(lanes_sum(sum) / static_cast<float>(kGatedWidth) + eps);
  union {
    uint2 bits;
    bf16 values[4];
  } out;
#pragma unroll
  for (int i = 0; i < 4; ++i) out.values[i] = narrow<bf16>(x[i] * scale * weight[i] * silu(z[i]));
  return out.bits;
}

}  // namespace drama3
