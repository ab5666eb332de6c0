// Softmax and top-k of one row of router logits by one block.
#pragma once

#include "kernels/cuda/common/rows.cuh"
#include "kernels/cuda/moe.cuh"

namespace drama3 {

constexpr int kMaxExperts = 256;  // one thread each

struct RoutedRow {
  __align__(16) float probability[kMaxExperts];  // 0 beyond the experts
  int expert[kMaxTopK];
  float weight[kMaxTopK];
};

// Softmax over all experts; slot = number of experts ahead of one (greater probability, or equal and a lower
// index); forced experts keep their given slots. Every warp takes the softmax's sums itself, so that two
// barriers are enough. Called by all threads, at least kReduceThreads; ends with a barrier.
__device__ inline void route_row(RoutedRow& routed, const RouteArgs& args, int row) {
  constexpr int kEach = kMaxExperts / 32;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  float logit[kEach];
  float top = -INFINITY;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = i * 32 + lane;
    logit[i] = expert < args.experts ? args.logits.row(row)[expert] : -INFINITY;
    top = fmaxf(top, logit[i]);
  }
  top = lanes_max(top);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    logit[i] = expf(logit[i] - top);
    sum += logit[i];
  }
  sum = lanes_sum(sum);
  float probability = 0.0f;  // of expert `thread`
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (i == thread / 32) probability = logit[i] / sum;
  }
  if (thread < kMaxExperts) routed.probability[thread] = probability;
  __syncthreads();  // all probabilities are written
  if (args.forced != nullptr) {
    if (thread < args.top_k) {
      routed.expert[thread] = args.forced[row * args.forced_stride + thread];
      routed.weight[thread] = routed.probability[routed.expert[thread]];
    }
  } else if (thread < args.experts) {
    int ahead = 0;
#pragma unroll 8
    for (int other = 0; other < kMaxExperts; other += 4) {
      const float4 p = *reinterpret_cast<const float4*>(routed.probability + other);
      ahead += p.x > probability || (p.x == probability && other < thread);
      ahead += p.y > probability || (p.y == probability && other + 1 < thread);
      ahead += p.z > probability || (p.z == probability && other + 2 < thread);
      ahead += p.w > probability || (p.w == probability && other + 3 < thread);
    }
    if (ahead < args.top_k) {
      routed.expert[ahead] = thread;
      routed.weight[ahead] = probability;
    }
  }
  __syncthreads();  // slots are filled
}

// The slot's weight, divided by the sum of all slots where the model asks for it.
__device__ inline float slot_weight(const RoutedRow& routed, const RouteArgs& args, int slot) {
  float total = 0.0f;
  for (int i = 0; i < args.top_k; ++i) total += routed.weight[i];
  return args.renormalize ? routed.weight[slot] / total : routed.weight[slot];
}

}  // namespace drama3
