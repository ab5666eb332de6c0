// Norm and RoPE of one head by one warp.
#pragma once

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/common/rows.cuh"

namespace drama3 {

// Calls what turn_head() reads beside the head into the second cache level; by one warp.
template <int Dim>
__device__ inline void prefetch_turn(const HeadTurn& turn, int position) {
  constexpr int kLine = 32;  // floats
  const int at = static_cast<int>(threadIdx.x) % 32 * kLine;
  if (turn.weight != nullptr && at < Dim) prefetch_line(turn.weight + at);
  if (at < turn.rotary / 2) {
    prefetch_line(turn.cos + static_cast<int64_t>(position) * (turn.rotary / 2) + at);
    prefetch_line(turn.sin + static_cast<int64_t>(position) * (turn.rotary / 2) + at);
  }
}

// The turned head, rounded to T, by one warp: `in` [Dim] global, `out` [Dim]; `line` [Dim] F32 shared scratch
// of the warp.
template <typename T, int Dim, typename Out>
__device__ inline void turn_head(Out* out, const T* in, float* line, const HeadTurn& turn, int position) {
  constexpr int kEach = Dim / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int half = turn.rotary / 2;
  const float* cos = turn.cos + static_cast<int64_t>(position) * half;
  const float* sin = turn.sin + static_cast<int64_t>(position) * half;
  // All loads first: none depends on another.
  float x[kEach], gain[kEach], c[kEach], s[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int d = lane * kEach + i;
    x[i] = widen(in[d]);
    gain[i] = turn.weight != nullptr ? turn.weight[d] : 1.0f;
    const int at = turn.interleaved ? d / 2 : d < half ? d : d - half;
    c[i] = d < turn.rotary ? cos[at] : 1.0f;
    s[i] = d < turn.rotary ? sin[at] : 0.0f;
  }
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kEach; ++i) sum = fmaf(x[i], x[i], sum);
  sum = lanes_sum(sum);
  const float scale = rsqrtf(sum / static_cast<float>(Dim) + turn.eps);
  __syncwarp();  // an earlier use of line is over
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (turn.weight != nullptr) x[i] = rounded<T>(x[i] * scale * gain[i]);
    line[lane * kEach + i] = x[i];
  }
  __syncwarp();  // the normed head is in line
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int d = lane * kEach + i;
    float y = line[d];
    if (d < turn.rotary) {
      const bool first = turn.interleaved ? d % 2 == 0 : d < half;
      const int other = turn.interleaved ? (first ? d + 1 : d - 1) : (first ? d + half : d - half);
      y = first ? y * c[i] - line[other] * s[i] : y * c[i] + line[other] * s[i];
    }
    if constexpr (sizeof(Out) == sizeof(float)) {
      out[d] = rounded<T>(y);
    } else {
      out[d] = narrow<T>(y);
    }
  }
}

}  // namespace drama3
