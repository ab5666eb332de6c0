// Routing to experts, FP8 quantisation of rows, and the list of rows of every expert.
#include "kernels/cuda/moe.cuh"
#include "kernels/cuda/route.cuh"
#include "lib/base/check.h"

namespace drama3 {
namespace {

constexpr int kListThreads = 256;

// One warp a row.
__global__ void __launch_bounds__(32) route_kernel(const RouteArgs args) {
  __shared__ RoutedRow routed;
  wait_for_previous();
  allow_next();
  const int row = static_cast<int>(blockIdx.x);
  route_warp(routed, args, row, args.top_k);
  __syncwarp();  // slots are filled
  const int slot = static_cast<int>(threadIdx.x);
  if (slot < args.top_k) {
    args.indices[row * args.stride + slot] = routed.expert[slot];
    args.weights[row * args.stride + slot] = slot_weight(routed, args, slot);
  }
}

// One warp a group of 128 columns.
template <typename In>
__global__ void __launch_bounds__(256) quantize_kernel(const QuantizeArgs args) {
  wait_for_previous();
  allow_next();
  const int groups = (args.n + kGroup - 1) / kGroup;
  const int index = static_cast<int>(blockIdx.x) * 8 + static_cast<int>(threadIdx.x) / 32;
  if (index >= args.rows * groups) return;
  const int row = index / groups, group = index % groups;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const In* in = static_cast<const In*>(args.in) + row * args.in_stride;
  float x[4];
  float top = 1e-10f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int column = group * kGroup + lane * 4 + i;
    x[i] = column < args.n ? widen(in[column]) : 0.0f;
    top = fmaxf(top, fabsf(x[i]));
  }
  const float scale = lanes_max(top) / 448.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int column = group * kGroup + lane * 4 + i;
    if (column < args.n) args.codes.row(row)[column] = e4m3_code(x[i] / scale);
  }
  if (lane == 0) args.scales.row(row)[group] = scale;
}

// One block. The order of an expert's pairs does not matter: each is a column of its own in the products.
__global__ void __launch_bounds__(kListThreads) list_kernel(const PairList list, const RouteArgs route) {
  __shared__ int counts[kListThreads];
  __shared__ int cursor[kListThreads];
  wait_for_previous();
  allow_next();
  const int thread = static_cast<int>(threadIdx.x);
  const int pairs = route.rows * route.top_k;
  counts[thread] = 0;
  __syncthreads();  // counts are zero
  for (int pair = thread; pair < pairs; pair += kListThreads) {
    atomicAdd(&counts[route.indices[pair / route.top_k * route.stride + pair % route.top_k]], 1);
  }
  __syncthreads();  // all pairs are counted
  int begin = 0;
  for (int expert = 0; expert < thread; ++expert) begin += counts[expert];
  cursor[thread] = begin;
  if (thread < route.experts) list.offsets[thread + 1] = begin + counts[thread];
  if (thread == 0) list.offsets[0] = 0;
  __syncthreads();  // every expert's first place is known
  for (int pair = thread; pair < pairs; pair += kListThreads) {
    const int expert = route.indices[pair / route.top_k * route.stride + pair % route.top_k];
    list.pairs[atomicAdd(&cursor[expert], 1)] = pair;
  }
}

}  // namespace

void route_rows(LaunchQueue& queue, const RouteArgs& args) {
  INVARIANT(args.experts <= kMaxExperts && args.top_k <= kMaxTopK && args.top_k <= args.experts, args.experts,
            " experts, top ", args.top_k);
  launch(queue, route_kernel, {.grid = dim3(static_cast<unsigned>(args.rows)), .block = 32}, args);
}

void quantize_groups(LaunchQueue& queue, const QuantizeArgs& args) {
  const int count = args.rows * ((args.n + kGroup - 1) / kGroup);
  launch(queue, args.in_float ? quantize_kernel<float> : quantize_kernel<bf16>,
         {.grid = dim3(static_cast<unsigned>((count + 7) / 8))}, args);
}

void list_pairs(LaunchQueue& queue, const PairList& list, const RouteArgs& route) {
  INVARIANT(route.experts <= kListThreads, route.experts, " experts");
  launch(queue, list_kernel, {.grid = dim3(1), .block = kListThreads}, list, route);
}

}  // namespace drama3
