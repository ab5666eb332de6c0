// Softmax, top-p, top-k and the inverse CDF of one draw by one block, without a sort: the entry at which the
// mass of all entries ahead passes a target is found in a histogram of the probabilities, in a crowded bin by
// quartering its range of ranks.
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

constexpr int kCuts = 3;  // ranks at which the sums are taken at once
// Bins of the histogram, by descending probability: 64 for each halving. The last one has all that is left.
constexpr int kBins = 1024;
constexpr int kBinShift = 17;
constexpr int kSearches = 3;  // of one draw, at most

// The bin at which a target is passed, and the packed weights before it and through it.
struct Bracket {
  int bin;
  uint64_t before, through;
};

// One entry of the short list that is ranked directly.
struct __align__(16) ListEntry {
  uint64_t rank, mass;
};

struct PickShared {
  uint64_t top[kMaxWarps];
  float sum[kMaxWarps];
  // A bin's mass is low + (high % 2^16) * 2^32; high / 2^16 counts its entries.
  __align__(16) uint32_t bin_low[kBins];
  __align__(16) uint32_t bin_high[kBins];
  uint64_t total[kMaxWarps];
  Bracket bracket[kSearches];
  uint32_t low[2][kCuts][kMaxWarps], high[2][kCuts][kMaxWarps], count[2][kCuts][kMaxWarps];
  ListEntry few[kFew];
  int few_count[kSearches];
};

// A weight in one word, so that a sum is one addition: all masses together stay below 2^48.
__device__ inline uint64_t packed(const Weight& weight) {
  return (static_cast<uint64_t>(weight.count) << 48) | weight.mass;
}
__device__ inline Weight unpacked(uint64_t word) {
  return {word & ((uint64_t{1} << 48) - 1), static_cast<uint32_t>(word >> 48)};
}

// The block's entries: thread t of n holds entries t, t + n, ...
template <int Each>
struct Entries {
  uint64_t rank[Each];  // 0 where there is none
  uint64_t mass[Each];
};

// Mass in halves, and number, of some of a thread's entries.
struct Halves {
  uint32_t low = 0, high = 0, count = 0;
};
constexpr uint32_t kHalfMask = (uint32_t{1} << kHalfBits) - 1;

__device__ inline void add_entry(Halves& sums, uint64_t mass, bool there) {
  sums.low += there ? static_cast<uint32_t>(mass) & kHalfMask : 0;
  sums.high += there ? static_cast<uint32_t>(mass >> kHalfBits) : 0;
  sums.count += there ? 1 : 0;
}
__device__ inline Halves lanes_total(const Halves& mine) {
  return {__reduce_add_sync(kAllLanes, mine.low), __reduce_add_sync(kAllLanes, mine.high),
          __reduce_add_sync(kAllLanes, mine.count)};
}
__device__ inline Weight weight_of(const Halves& sums) {
  return {sums.low + (static_cast<uint64_t>(sums.high) << kHalfBits), sums.count};
}

// Sums over the entries of each rank `from` or greater. One barrier; `turn` alternates between calls.
template <int Each>
__device__ inline void weights_from(Weight (&sums)[kCuts], PickShared& shared, const Entries<Each>& entries,
                                    const uint64_t (&from)[kCuts], int& turn) {
  static_assert(uint64_t{kHalfMask} * Each * 32 < uint64_t{1} << 32, "a warp's halves overflow");
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int cut = 0; cut < kCuts; ++cut) {
    Halves mine;
#pragma unroll
    for (int i = 0; i < Each; ++i) add_entry(mine, entries.mass[i], entries.rank[i] >= from[cut]);
    const Halves sum = lanes_total(mine);
    if (lane == 0) {
      shared.low[turn][cut][warp] = sum.low & kHalfMask;
      shared.high[turn][cut][warp] = sum.high + (sum.low >> kHalfBits);
      shared.count[turn][cut][warp] = sum.count;
    }
  }
  __syncthreads();  // sums of all warps are written
  const bool there = lane < static_cast<int>(blockDim.x) / 32;
#pragma unroll
  for (int cut = 0; cut < kCuts; ++cut) {
    Halves mine;
    if (there) {
      mine = {shared.low[turn][cut][lane], shared.high[turn][cut][lane], shared.count[turn][cut][lane]};
    }
    sums[cut] = weight_of(lanes_total(mine));
  }
  turn ^= 1;
}

// ---- the histogram ----

__device__ inline void clear_bins(PickShared& shared) {
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += static_cast<int>(blockDim.x)) {
    shared.bin_low[i] = 0;
    shared.bin_high[i] = 0;
  }
  if (threadIdx.x < kSearches) shared.few_count[threadIdx.x] = 0;
}

__device__ inline void add_to_bin(PickShared& shared, int bin, const Weight& weight) {
  const auto low = static_cast<uint32_t>(weight.mass);
  const uint32_t old = atomicAdd(&shared.bin_low[bin], low);
  const uint32_t carry = old + low < old ? 1 : 0;
  atomicAdd(&shared.bin_high[bin], (weight.count << 16) + static_cast<uint32_t>(weight.mass >> 32) + carry);
}

// Adds the entries to their bins; those of the last bin, which may be most of them, once for each warp.
template <int Each>
__device__ inline void fill_bins(PickShared& shared, const Entries<Each>& entries, uint32_t top_bits) {
  Halves rest;
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    const uint32_t bin = (top_bits - static_cast<uint32_t>(entries.rank[i] >> 32)) >> kBinShift;
    const bool there = entries.rank[i] != 0;
    add_entry(rest, entries.mass[i], there && bin >= kBins - 1);
    if (there && bin < kBins - 1) add_to_bin(shared, static_cast<int>(bin), {entries.mass[i], 1});
  }
  const Weight sum = weight_of(lanes_total(rest));
  if (threadIdx.x % 32 == 0 && sum.count > 0) add_to_bin(shared, kBins - 1, sum);
}

// Packed weights of the thread's neighbouring bins, and of all bins before them.
template <int Bins>
struct ThreadBins {
  uint64_t own[Bins];
  uint64_t before;
};

__device__ inline uint64_t lanes_scan(uint64_t value) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const uint64_t other = __shfl_sync(kAllLanes, value, max(lane - step, 0));
    value += lane >= step ? other : 0;
  }
  return value;
}

// After the barrier that ends the filling; returns the weight of all bins. One barrier.
template <int Bins>
__device__ inline Weight scan_bins(ThreadBins<Bins>& bins, PickShared& shared) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  uint64_t sum = 0;
#pragma unroll
  for (int i = 0; i < Bins; ++i) {
    const uint32_t high = shared.bin_high[thread * Bins + i];
    bins.own[i] = packed(
        {shared.bin_low[thread * Bins + i] + (static_cast<uint64_t>(high & 0xffffu) << 32), high >> 16});
    sum += bins.own[i];
  }
  const uint64_t through = lanes_scan(sum);
  if (lane == 31) shared.total[warp] = through;
  __syncthreads();  // totals of all warps are written
  const uint64_t total = lane < static_cast<int>(blockDim.x) / 32 ? shared.total[lane] : 0;
  const uint64_t totals = lanes_scan(total);
  bins.before = __shfl_sync(kAllLanes, totals - total, warp) + through - sum;
  return unpacked(__shfl_sync(kAllLanes, totals, 31));
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

// Ranks from low on, below high, and the weights of all entries from each on.
struct Range {
  uint64_t low, high;
  Weight from_low, from_high;
};

// The ranks of the bin at which `target` is passed; all entries together must pass it. One barrier.
template <int Bins>
__device__ inline Range bracket(PickShared& shared, const ThreadBins<Bins>& bins, const Target& target,
                                uint32_t top_bits, int search) {
  uint64_t before = bins.before;
#pragma unroll
  for (int i = 0; i < Bins; ++i) {
    const uint64_t through = before + bins.own[i];
    if (!target.passed(unpacked(before)) && target.passed(unpacked(through))) {
      shared.bracket[search] = {static_cast<int>(threadIdx.x) * Bins + i, before, through};
    }
    before = through;
  }
  __syncthreads();  // the bin is written
  const Bracket found = shared.bracket[search];
  const uint32_t ahead = static_cast<uint32_t>(found.bin) << kBinShift, end = ahead + (1u << kBinShift);
  const bool last = found.bin == kBins - 1 || end > top_bits;
  return {last ? 1 : (static_cast<uint64_t>(top_bits - end) + 1) << 32,
          (static_cast<uint64_t>(top_bits - ahead) + 1) << 32, unpacked(found.through),
          unpacked(found.before)};
}

// The first entry of the range, in descending rank, at which `target` is passed: it is passed from low on and
// not from high on.
template <int Each>
__device__ Place first_passing(PickShared& shared, const Entries<Each>& entries, const Target& target,
                               const Range& range, int search, int& turn) {
  uint64_t low = range.low, high = range.high;
  Weight from_low = range.from_low, from_high = range.from_high;
  while (from_low.count - from_high.count > kFew) {
    // Cuts in ascending rank, weights in descending order.
    const uint64_t quarter = (high - low) / 4;
    const uint64_t cuts[kCuts] = {low + quarter, low + 2 * quarter, low + 3 * quarter};
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
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    if (entries.rank[i] >= low && entries.rank[i] < high) {
      shared.few[atomicAdd(&shared.few_count[search], 1)] = {entries.rank[i], entries.mass[i]};
    }
  }
  __syncthreads();  // the list is written; every warp looks it through
  const int lane = static_cast<int>(threadIdx.x) % 32, few = shared.few_count[search];
  const ListEntry mine = lane < few ? shared.few[lane] : ListEntry{0, 0};
  Place place{mine.rank, from_high};
#pragma unroll 4
  for (int other = 0; other < few; ++other) {
    const ListEntry entry = shared.few[other];
    if (entry.rank >= mine.rank) place.through.mass += entry.mass, ++place.through.count;
  }
  Weight before = place.through;
  if (lane < few) before.mass -= mine.mass, --before.count;
  const bool found = lane < few && target.passed(place.through) && !target.passed(before);
  const int from = __ffs(static_cast<int>(__ballot_sync(kAllLanes, found))) - 1;
  return {
      __shfl_sync(kAllLanes, place.rank, from),
      {__shfl_sync(kAllLanes, place.through.mass, from), __shfl_sync(kAllLanes, place.through.count, from)}};
}

// The greatest rank of the block.
__device__ inline uint64_t block_top(PickShared& shared, uint64_t rank) {
  const auto bits = static_cast<uint32_t>(rank >> 32);
  const uint32_t most = __reduce_max_sync(kAllLanes, bits);
  const uint32_t rest = __reduce_max_sync(kAllLanes, bits == most ? static_cast<uint32_t>(rank) : 0);
  rank = (static_cast<uint64_t>(most) << 32) | rest;
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

// The drawn entry of the distribution that top_p and top_k leave. A search writes its list after the barrier
// of its bracket, when the list of the search before is no longer read.
template <int Threads, int Each>
__device__ int draw(PickShared& shared, const Entries<Each>& entries, const Sampling& sampling,
                    uint32_t top_bits, float uniform) {
  fill_bins(shared, entries, top_bits);
  __syncthreads();  // the bins are filled
  ThreadBins<kBins / Threads> bins;
  const Weight all = scan_bins(bins, shared);
  // Entries whose mass ahead is below top_p: up to the first whose mass through reaches it.
  const auto limit = static_cast<uint64_t>(sampling.top_p * kOne);
  const auto most = static_cast<uint32_t>(sampling.top_k);
  Place found{.rank = 0, .through = all};
  int turn = 0;
  // Three turns of one body are faster than three bodies.
#pragma unroll 1
  for (int search = 0; search < kSearches; ++search) {
    const Weight kept = found.through;
    Target target;
    if (search == 0) {  // where top_p ends
      if (limit > 0 && kept.mass < limit) continue;
      target = {.mass = limit > 0 ? limit - 1 : 0, .count = 0, .by_count = limit == 0};
    } else if (search == 1) {  // where top_k ends
      if (sampling.top_k <= 0 || kept.count <= most) continue;
      target = {.count = most - 1, .by_count = true};
    } else {  // what is drawn
      target.mass = static_cast<uint64_t>(static_cast<double>(kept.mass) * static_cast<double>(uniform));
    }
    found =
        first_passing(shared, entries, target, bracket(shared, bins, target, top_bits, search), search, turn);
  }
  return index_of(found.rank);
}

template <typename T, int kThreads, int Each>
__global__ void __launch_bounds__(kThreads) pick_kernel(const T* logits, const PickArgs args) {
  __shared__ PickShared shared;
  clear_bins(shared);
  wait_for_previous();
  allow_next();
  const int thread = static_cast<int>(threadIdx.x);
  const Sampling sampling = *args.sampling;
  const int frame = *args.frame;
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
    if (top == kNotFinite && *args.failure == 0) *args.failure = 1 + frame * 16 + args.codebook;
    return;
  }
  const float top_logit = logit_of(top);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    x[i] =
        i * kThreads + thread < args.n ? fminf(expf((x[i] - top_logit) / sampling.temperature), 1.0f) : 0.0f;
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
  const float uniform =
      draw_uniform(sampling.seed, static_cast<uint32_t>(frame), static_cast<uint32_t>(args.codebook));
  const uint32_t top_bits = __float_as_uint(1.0f / total);  // the greatest probability: its exponential is 1
  const int drawn = draw<kThreads>(shared, entries, sampling, top_bits, uniform);
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
