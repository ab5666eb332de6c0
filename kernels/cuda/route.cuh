// Softmax and top-k of one row of router logits by one warp.
#pragma once

#include "kernels/cuda/common/rows.cuh"
#include "kernels/cuda/moe.cuh"

namespace drama3 {

constexpr int kMaxExperts = 256;

struct RoutedRow {
  int expert[kMaxTopK];
  float weight[kMaxTopK];
};

// Eight words into descending order, by a network of nineteen exchanges.
__device__ inline void sort_descending(uint64_t (&words)[8]) {
  constexpr int kPairs[19][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {0, 2}, {1, 3}, {4, 6},
                                 {5, 7}, {1, 2}, {5, 6}, {0, 4}, {3, 7}, {1, 5}, {2, 6},
                                 {1, 4}, {3, 6}, {2, 4}, {3, 5}, {3, 4}};
#pragma unroll
  for (int i = 0; i < 19; ++i) {
    uint64_t& a = words[kPairs[i][0]];
    uint64_t& b = words[kPairs[i][1]];
    const uint64_t high = a > b ? a : b, low = a > b ? b : a;
    a = high, b = low;
  }
}

// The forced experts in their given slots, with their probabilities.
__device__ inline void take_forced(RoutedRow& routed, const RouteArgs& args, int row,
                                   const uint64_t (&words)[8]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int slot = 0; slot < args.top_k; ++slot) {
    const int expert = args.forced[row * args.forced_stride + slot];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (expert != i * 32 + lane) continue;
      routed.expert[slot] = expert;
      routed.weight[slot] = __uint_as_float(static_cast<uint32_t>(words[i] >> 32) - 1);
    }
  }
}

// Softmax over all experts and the first `slots` of them by descending probability, ties to the lower index,
// or all the forced experts in their given slots; by one warp. Later slots are left as they were.
__device__ inline void route_warp(RoutedRow& routed, const RouteArgs& args, int row, int slots) {
  constexpr int kEach = kMaxExperts / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float p[kEach];  // of experts i * 32 + lane
  float top = -INFINITY;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = i * 32 + lane;
    p[i] = expert < args.experts ? args.logits.row(row)[expert] : -INFINITY;
    top = fmaxf(top, p[i]);
  }
  top = lanes_max(top);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    p[i] = expf(p[i] - top);
    sum += p[i];
  }
  sum = lanes_sum(sum);
  // The lane's experts in descending order; a word orders as (probability, lower index) does among them.
  uint64_t mine[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = i * 32 + lane;
    const uint32_t bits = expert < args.experts ? __float_as_uint(p[i] / sum) + 1 : 0;  // 0 for none
    mine[i] = (static_cast<uint64_t>(bits) << 32) | static_cast<uint32_t>(kMaxExperts - 1 - expert);
  }
  if (args.forced != nullptr) return take_forced(routed, args, row, mine);
  sort_descending(mine);
  for (int slot = 0; slot < slots; ++slot) {
    const auto bits = static_cast<uint32_t>(mine[0] >> 32);
    const uint32_t best = __reduce_max_sync(kAllLanes, bits);
    // Of the lanes that hold it, the one with the lowest expert.
    const uint32_t index = bits == best ? static_cast<uint32_t>(mine[0]) : 0;
    const uint32_t first = __reduce_max_sync(kAllLanes, index);
    if (bits == best && index == first) {
      routed.expert[slot] = kMaxExperts - 1 - static_cast<int>(first);
      routed.weight[slot] = __uint_as_float(best - 1);
#pragma unroll
      for (int i = 0; i + 1 < kEach; ++i) mine[i] = mine[i + 1];
      mine[kEach - 1] = 0;
    }
  }
}

// The slot's weight, divided by the sum of all slots, which must be filled, where the model asks for it.
__device__ inline float slot_weight(const RoutedRow& routed, const RouteArgs& args, int slot) {
  float total = 0.0f;
  for (int i = 0; i < args.top_k; ++i) total += routed.weight[i];
  return args.renormalize ? routed.weight[slot] / total : routed.weight[slot];
}

}  // namespace drama3
