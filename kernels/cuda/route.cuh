// Softmax and top-k of one row of router logits by one block.
#pragma once

#include "kernels/cuda/common/rows.cuh"
#include "kernels/cuda/moe.cuh"

namespace drama3 {

constexpr int kMaxExperts = 256;  // one thread each

struct RoutedRow {
  float probability[kMaxExperts];
  int expert[kMaxTopK];
  float weight[kMaxTopK];
};

// Softmax over all experts; slot = number of experts ahead of one (greater probability, or equal and a lower
// index); forced experts keep their given slots. Called by all threads, at least kReduceThreads; ends with a
// barrier.
__device__ inline void route_row(RoutedRow& routed, const RouteArgs& args, int row) {
  const int thread = static_cast<int>(threadIdx.x);
  const bool mine = thread < args.experts;
  const float logit = mine ? args.logits.row(row)[thread] : -INFINITY;
  const float top = block_max(logit);
  const float weight = mine ? expf(logit - top) : 0.0f;
  const float sum = block_sum(thread < kReduceThreads ? weight : 0.0f);
  const float probability = weight / sum;
  if (mine) routed.probability[thread] = probability;
  __syncthreads();  // all probabilities are written
  if (args.forced != nullptr) {
    if (thread < args.top_k) {
      routed.expert[thread] = args.forced[row * args.forced_stride + thread];
      routed.weight[thread] = routed.probability[routed.expert[thread]];
    }
  } else if (mine) {
    int ahead = 0;
    for (int other = 0; other < args.experts; ++other) {
      const float p = routed.probability[other];
      ahead += p > probability || (p == probability && other < thread);
    }
    if (ahead < args.top_k) {
      routed.expert[ahead] = thread;
      routed.weight[ahead] = probability;
    }
  }
  __syncthreads();  // slots are filled
  float total = 0.0f;
  for (int slot = 0; slot < args.top_k; ++slot) total += routed.weight[slot];
  __syncthreads();  // weights are read
  if (args.renormalize && thread < args.top_k) routed.weight[thread] /= total;
  __syncthreads();  // weights are final
}

}  // namespace drama3
