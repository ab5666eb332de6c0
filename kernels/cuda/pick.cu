// Softmax, top-p, top-k and the inverse CDF of one draw by one block, without a sort: the entry at which the
// mass of all entries ahead passes a target is found by quartering the range of ranks.
//
// Probabilities become integers (2^46 = 1), so that sums are exact and the same in any order.
#include "kernels/cuda/pick.cuh"

#include "kernels/cuda/common/rows.cuh"
#include "kernels/cuda/common/typed.cuh"
#include "lib/base/philox.h"

namespace drama3 {
namespace {

constexpr int kMaxWarps = 32;
constexpr int kFew = 32;  // entries that one warp ranks directly
constexpr int kHalfBits = 23;
constexpr float kOne = 0x1p46f;
constexpr uint64_t kNotFinite = ~uint64_t{0};

struct PickArgs {
  int* code = nullptr;
  int n = 0;
  const Sampling* sampling = nullptr;
  const int* frame = nullptr;
  int* failure = nullptr;
  int codebook = 0;
};

// A rank: greater ranks come first, equal values by lower index. `bits` orders as the value does.
__device__ inline uint64_t rank_of(uint32_t bits, int index) {
  return (static_cast<uint64_t>(bits) << 32) | (0xffffffffu - static_cast<uint32_t>(index));
}
__device__ inline int index_of(uint64_t rank) {
  return static_cast<int>(0xffffffffu - static_cast<uint32_t>(rank));
}

// Bits of a logit that order as logits do: the sign is turned, and minus zero is zero.
__device__ inline uint32_t ordered_bits(float logit) {
  const uint32_t bits = __float_as_uint(logit + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline float logit_of(uint64_t rank) {
  const auto bits = static_cast<uint32_t>(rank >> 32);
  return __uint_as_float((bits & 0x80000000u) != 0 ? bits & 0x7fffffffu : ~bits);
}

// Mass and number of some entries.
struct Weight {
  uint64_t mass = 0;
  uint32_t count = 0;
};

constexpr uint64_t kHalving = uint64_t{1} << 55;  // from a rank to that of half the probability
constexpr int kCuts = 3;                          // ranks at which the sums are taken at once

struct PickShared {
  uint64_t top[kMaxWarps];
  float sum[kMaxWarps];
  uint32_t low[2][kCuts][kMaxWarps], high[2][kCuts][kMaxWarps], count[2][kCuts][kMaxWarps];
  uint64_t few_rank[kFew], few_mass[kFew];
  uint64_t above;  // a rank above all entries
  int few;
};

// The block's entries: thread t of n holds entries t, t + n, ...
template <int Each>
struct Entries {
  uint64_t rank[Each];  // 0 where there is none
  uint64_t mass[Each];
};

// Sums over the entries of each rank `from` or greater. One barrier; `turn` alternates between calls.
template <int Each, int Cuts>
__device__ inline void weights_from(Weight (&sums)[Cuts], PickShared& shared, const Entries<Each>& entries,
                                    const uint64_t (&from)[Cuts], int& turn) {
  constexpr uint32_t kMask = (uint32_t{1} << kHalfBits) - 1;
  static_assert(uint64_t{kMask} * Each * 32 < uint64_t{1} << 32, "a warp's halves overflow");
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int cut = 0; cut < Cuts; ++cut) {
    uint32_t low = 0, high = 0, count = 0;
#pragma unroll
    for (int i = 0; i < Each; ++i) {
      const bool ahead = entries.rank[i] >= from[cut];
      low += ahead ? static_cast<uint32_t>(entries.mass[i]) & kMask : 0;
      high += ahead ? static_cast<uint32_t>(entries.mass[i] >> kHalfBits) : 0;
      count += ahead ? 1 : 0;
    }
    low = __reduce_add_sync(kAllLanes, low);
    high = __reduce_add_sync(kAllLanes, high);
    count = __reduce_add_sync(kAllLanes, count);
    if (lane == 0) {
      shared.low[turn][cut][warp] = low & kMask;
      shared.high[turn][cut][warp] = high + (low >> kHalfBits);
      shared.count[turn][cut][warp] = count;
    }
  }
  __syncthreads();  // sums of all warps are written
  const bool there = lane < static_cast<int>(blockDim.x) / 32;
#pragma unroll
  for (int cut = 0; cut < Cuts; ++cut) {
    const uint32_t low = __reduce_add_sync(kAllLanes, there ? shared.low[turn][cut][lane] : 0);
    const uint32_t high = __reduce_add_sync(kAllLanes, there ? shared.high[turn][cut][lane] : 0);
    const uint32_t count = __reduce_add_sync(kAllLanes, there ? shared.count[turn][cut][lane] : 0);
    sums[cut] = {low + (static_cast<uint64_t>(high) << kHalfBits), count};
  }
  turn ^= 1;
}

// An entry and the weight of all entries up to and with it.
struct Place {
  uint64_t rank = 0;
  Weight through;
};

// Which entry is looked for: the first whose weight through passes the target.
struct Target {
  uint64_t mass = 0;
  uint32_t count = 0;
  bool by_count = false;
  __device__ bool passed(const Weight& weight) const {
    return by_count ? weight.count > count : weight.mass > mass;
  }
};

// The first entry, in descending rank, at which `target` is passed. All entries together must pass it.
template <int Each>
__device__ Place first_passing(PickShared& shared, const Entries<Each>& entries, const Target& target,
                               const Weight& all, int& turn) {
  uint64_t low = 1, high = shared.above;  // passed from low on; not from high on
  Weight from_low = all, from_high;
  while (from_low.count - from_high.count > kFew) {
    // The range is quartered, at first by the probabilities most likely: cuts in ascending rank, weights in
    // descending order.
    const uint64_t quarter = (high - low) / 4;
    uint64_t cuts[kCuts] = {low + quarter, low + 2 * quarter, low + 3 * quarter};
    if (low == 1 && high >= 17 * kHalving) {
      cuts[0] = high - 16 * kHalving, cuts[1] = high - 4 * kHalving, cuts[2] = high - kHalving;
    }
    Weight weights[kCuts];
    weights_from(weights, shared, entries, cuts, turn);
#pragma unroll
    for (int cut = 0; cut < kCuts; ++cut) {
      if (cuts[cut] >= high || cuts[cut] < low) continue;
      if (target.passed(weights[cut])) {
        low = cuts[cut], from_low = weights[cut];
      } else {
        high = cuts[cut], from_high = weights[cut];
      }
    }
  }
  if (threadIdx.x == 0) shared.few = 0;
  __syncthreads();  // the list is empty
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    if (entries.rank[i] >= low && entries.rank[i] < high) {
      const int at = atomicAdd(&shared.few, 1);
      shared.few_rank[at] = entries.rank[i];
      shared.few_mass[at] = entries.mass[i];
    }
  }
  __syncthreads();  // the list is written; every warp looks it through
  const int lane = static_cast<int>(threadIdx.x) % 32, few = shared.few;
  Place place{lane < few ? shared.few_rank[lane] : 0, from_high};
  for (int other = 0; other < few; ++other) {
    if (shared.few_rank[other] >= place.rank) {
      place.through.mass += shared.few_mass[other];
      ++place.through.count;
    }
  }
  Weight before = place.through;
  if (lane < few) before.mass -= shared.few_mass[lane], --before.count;
  const bool found = lane < few && target.passed(place.through) && !target.passed(before);
  const int from = __ffs(static_cast<int>(__ballot_sync(kAllLanes, found))) - 1;
  __syncthreads();  // the list is used
  return {
      __shfl_sync(kAllLanes, place.rank, from),
      {__shfl_sync(kAllLanes, place.through.mass, from), __shfl_sync(kAllLanes, place.through.count, from)}};
}

// The greatest rank of the block.
__device__ inline uint64_t block_top(PickShared& shared, uint64_t rank) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const uint64_t other = __shfl_xor_sync(kAllLanes, rank, step);
    rank = other > rank ? other : rank;
  }
  if (threadIdx.x % 32 == 0) shared.top[threadIdx.x / 32] = rank;
  __syncthreads();  // every warp's greatest is written
  const int warps = static_cast<int>(blockDim.x) / 32;
  for (int i = 0; i < warps; ++i) rank = shared.top[i] > rank ? shared.top[i] : rank;
  return rank;
}

// Sum over all threads: a tree in each warp, then warps in ascending order.
__device__ inline float block_total(PickShared& shared, float value) {
  const float sum = lanes_sum(value);
  if (threadIdx.x % 32 == 0) shared.sum[threadIdx.x / 32] = sum;
  __syncthreads();  // sums of all warps are written
  float total = 0.0f;
  const int warps = static_cast<int>(blockDim.x) / 32;
  for (int i = 0; i < warps; ++i) total += shared.sum[i];
  return total;
}

// The drawn entry of the distribution that top_p and top_k leave.
template <int Each>
__device__ int draw(PickShared& shared, const Entries<Each>& entries, const Sampling& sampling,
                    float uniform) {
  int turn = 0;
  Weight sums[1];
  weights_from(sums, shared, entries, {1}, turn);
  const Weight all = sums[0];
  // Entries whose mass ahead is below top_p: up to the first whose mass through reaches it.
  const auto limit = static_cast<uint64_t>(sampling.top_p * kOne);
  Weight kept = all;
  if (limit > 0 && all.mass > limit - 1) {
    kept = first_passing(shared, entries, {.mass = limit - 1}, all, turn).through;
  } else if (limit == 0) {
    kept = first_passing(shared, entries, {.count = 0, .by_count = true}, all, turn).through;
  }
  const auto most = static_cast<uint32_t>(sampling.top_k);
  if (sampling.top_k > 0 && kept.count > most) {
    kept = first_passing(shared, entries, {.count = most - 1, .by_count = true}, all, turn).through;
  }
  const auto passed = static_cast<uint64_t>(static_cast<double>(kept.mass) * static_cast<double>(uniform));
  return index_of(first_passing(shared, entries, {.mass = passed}, all, turn).rank);
}

template <typename T, int kThreads, int Each>
__global__ void __launch_bounds__(kThreads) pick_kernel(const T* logits, const PickArgs args) {
  __shared__ PickShared shared;
  wait_for_previous();
  allow_next();
  const int thread = static_cast<int>(threadIdx.x);
  const Sampling sampling = *args.sampling;
  float x[Each];
  uint64_t top = 0;
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    const int index = i * kThreads + thread;
    x[i] = index < args.n ? widen(logits[index]) : 0.0f;
    if (index >= args.n) continue;
    const uint64_t rank = isfinite(x[i]) ? rank_of(ordered_bits(x[i]), index) : kNotFinite;
    top = rank > top ? rank : top;
  }
  top = block_top(shared, top);
  if (top == kNotFinite || sampling.temperature == 0.0f) {
    if (thread != 0) return;
    *args.code = top == kNotFinite ? 0 : index_of(top);
    if (top == kNotFinite && *args.failure == 0) *args.failure = 1 + *args.frame * 16 + args.codebook;
    return;
  }
  const float scaled_top = logit_of(top) / sampling.temperature;
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    x[i] = i * kThreads + thread < args.n ? expf(x[i] / sampling.temperature - scaled_top) : 0.0f;
    sum += x[i];
  }
  const float total = block_total(shared, sum);
  Entries<Each> entries;
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    const int index = i * kThreads + thread;
    const float probability = x[i] / total;
    entries.rank[i] = index < args.n ? rank_of(__float_as_uint(probability), index) : 0;
    entries.mass[i] = static_cast<uint64_t>(probability * kOne);
  }
  if (thread == index_of(top) % kThreads) {
    const int held = index_of(top) / kThreads;
#pragma unroll
    for (int i = 0; i < Each; ++i) {
      if (i == held) shared.above = (entries.rank[i] | 0xffffffffu) + 1;
    }
  }
  const float uniform =
      draw_uniform(sampling.seed, static_cast<uint32_t>(*args.frame), static_cast<uint32_t>(args.codebook));
  const int drawn = draw(shared, entries, sampling, uniform);
  if (thread == 0) *args.code = drawn;
}

}  // namespace

void pick_code(LaunchQueue& queue, const View& code, const View& logits, const PickState& state,
               int64_t codebook) {
  const int n = static_cast<int>(logits.elements());
  INVARIANT(n >= 1 && n <= kMaxCandidates, n, " candidates");
  const PickArgs args{
      .code = rows_of<int32_t>(code).data,
      .n = n,
      .sampling = reinterpret_cast<const Sampling*>(rows_of<const uint8_t>(state.sampling).data),
      .frame = rows_of<const int32_t>(state.frame).data,
      .failure = rows_of<int32_t>(state.failure).data,
      .codebook = static_cast<int>(codebook)};
  with_type(logits.type, [&](auto t) {
    using T = decltype(t);
    const T* from = static_cast<const T*>(logits.data);
    if (n <= 1024) {
      launch(queue, pick_kernel<T, 256, 4>, {.block = 256}, from, args);
    } else if (n <= 5120) {
      launch(queue, pick_kernel<T, 1024, 5>, {.block = 1024}, from, args);
    } else {
      launch(queue, pick_kernel<T, 512, kMaxCandidates / 512>, {.block = 512}, from, args);
    }
  });
}

}  // namespace drama3
