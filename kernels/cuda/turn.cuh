// Norm and RoPE of one head by one warp.
#pragma once

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/common/rows.cuh"

namespace drama3 {

// The turned head, rounded to T, by one warp: `in` [Dim] global, `out` [Dim]; `line` [Dim] F32 shared scratch
// of the warp.
template <typename T, int Dim, typename Out>
__device__ inline void turn_head(Out* out, const T* in, float* line, const HeadTurn& turn, int position) {
  constexpr int kEach = Dim / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float x[kEach];
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    x[i] = widen(in[lane * kEach + i]);
    sum = fmaf(x[i], x[i], sum);
  }
  sum = lanes_sum(sum);
  const float scale = rsqrtf(sum / static_cast<float>(Dim) + turn.eps);
  __syncwarp();  // an earlier use of line is over
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (turn.weight != nullptr) x[i] = rounded<T>(x[i] * scale * turn.weight[lane * kEach + i]);
    line[lane * kEach + i] = x[i];
  }
  __syncwarp();  // the normed head is in line
  const int half = turn.rotary / 2;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int d = lane * kEach + i;
    float y = line[d];
    if (d < turn.rotary) {
      const int pair = turn.interleaved ? d / 2 : d % half;
      const bool first = turn.interleaved ? d % 2 == 0 : d < half;
      const int other = turn.interleaved ? (first ? d + 1 : d - 1) : (first ? d + half : d - half);
      const float c = turn.cos[static_cast<int64_t>(position) * half + pair];
      const float s = turn.sin[static_cast<int64_t>(position) * half + pair];
      y = first ? y * c - line[other] * s : y * c + line[other] * s;
    }
    if constexpr (sizeof(Out) == sizeof(float)) {
      out[d] = rounded<T>(y);
    } else {
      out[d] = narrow<T>(y);
    }
  }
}

}  // namespace drama3
