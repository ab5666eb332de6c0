// Sums and maxima over a warp, and sums over groups of 256 threads, in one fixed order.
#pragma once

#include "kernels/cuda/common/device.cuh"

namespace drama3 {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kReduceThreads = 256;  // threads of one reduction

template <int Lanes = 32>
__device__ inline float lanes_sum(float value) {
#pragma unroll
  for (int step = Lanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(kAllLanes, value, step);
  return value;
}

template <int Lanes = 32>
__device__ inline float lanes_max(float value) {
#pragma unroll
  for (int step = Lanes / 2; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, step));
  }
  return value;
}

// Sum over each group of kReduceThreads threads alone, of at most four groups in the block: a tree in each
// warp, then warps in ascending order. Every thread of the block calls it and gets the sum of its group;
// before it is called again there must be another barrier.
__device__ inline float group_sum(float value) {
  constexpr int kWarps = kReduceThreads / 32;
  __shared__ float partial[4][kWarps];
  const int thread = static_cast<int>(threadIdx.x);
  const int group = thread / kReduceThreads;
  const float sum = lanes_sum(value);
  if (thread % 32 == 0) partial[group][thread % kReduceThreads / 32] = sum;
  __syncthreads();  // partials are written
  float total = 0.0f;
  for (int warp = 0; warp < kWarps; ++warp) total += partial[group][warp];
  return total;
}

}  // namespace drama3
