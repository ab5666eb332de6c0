// Softmax, descending sort, top-p, top-k and the inverse CDF of one draw, all in one block.
#include "kernels/cuda/pick.cuh"

#include "kernels/cuda/common/rows.cuh"
#include "kernels/cuda/common/typed.cuh"
#include "lib/base/philox.h"

namespace drama3 {
namespace {

constexpr int kPickThreads = 1024;

struct PickArgs {
  int* code = nullptr;
  int n = 0;
  int sorted = 0;  // n rounded up to a power of two
  const Sampling* sampling = nullptr;
  const int* frame = nullptr;
  int* failure = nullptr;
  int codebook = 0;
};

// Probability and index in one word: greater words come first, ties by lower index.
__device__ inline uint64_t rank_word(float probability, int index) {
  return (static_cast<uint64_t>(__float_as_uint(probability)) << 32) |
         (0xffffffffu - static_cast<uint32_t>(index));
}
__device__ inline float probability_of(uint64_t word) {
  return __uint_as_float(static_cast<uint32_t>(word >> 32));
}
__device__ inline int index_of(uint64_t word) {
  return static_cast<int>(0xffffffffu - static_cast<uint32_t>(word));
}

// Bitonic sort of `count` words, a power of two, into descending order.
__device__ void sort_descending(uint64_t* words, int count) {
  for (int size = 2; size <= count; size *= 2) {
    for (int step = size / 2; step > 0; step /= 2) {
      for (int i = static_cast<int>(threadIdx.x); i < count / 2; i += kPickThreads) {
        const int low = 2 * i - (i & (step - 1));
        const int high = low + step;
        const bool descending = (low & size) == 0;
        const uint64_t a = words[low], b = words[high];
        if ((a < b) == descending) {
          words[low] = b;
          words[high] = a;
        }
      }
      __syncthreads();  // this step's exchanges are done
    }
  }
}

// Sum of the values of all threads before this one: a tree in each warp, then warps in ascending order.
__device__ float sum_before(float value, float* warp_sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  float through = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const float other = __shfl_up_sync(kAllLanes, through, step);
    if (lane >= step) through += other;
  }
  if (lane == 31) warp_sums[warp] = through;
  __syncthreads();  // sums of all warps are written
  const float before = __shfl_up_sync(kAllLanes, through, 1);
  float base = 0.0f;
  for (int i = 0; i < warp; ++i) base += warp_sums[i];
  return lane > 0 ? base + before : base;
}

struct DrawShared {
  float warp_sums[kPickThreads / 32];
  float total;  // of the kept entries
  int kept;
  int drawn;
};

// The drawn entry of the sorted words. Each thread sums its own run of entries in order; runs are added by
// sum_before.
__device__ int draw(DrawShared& shared, const uint64_t* words, int n, int sorted, const Sampling& sampling,
                    float uniform) {
  const int thread = static_cast<int>(threadIdx.x);
  const int each = (sorted + kPickThreads - 1) / kPickThreads;
  const int first = thread * each, end = min(n, first + each);
  const int limit = sampling.top_k > 0 ? min(n, sampling.top_k) : n;
  float mine = 0.0f;
  for (int i = first; i < end; ++i) mine += probability_of(words[i]);
  const float before = sum_before(mine, shared.warp_sums);
  if (thread == 0) shared.kept = limit, shared.drawn = n;
  __syncthreads();  // kept and drawn have their largest values
  float running = before;
  for (int i = first; i < end; ++i) {
    if (i > 0 && running >= sampling.top_p) {
      atomicMin(&shared.kept, i);
      break;
    }
    running += probability_of(words[i]);
  }
  __syncthreads();  // kept is known
  const int kept = shared.kept;
  if (first < kept && kept <= first + each) {  // the last kept entry is in this run
    float total = before;
    for (int i = first; i < kept; ++i) total += probability_of(words[i]);
    shared.total = total;
  }
  __syncthreads();  // total is known
  running = before;
  for (int i = first; i < min(end, kept); ++i) {
    running += probability_of(words[i]);
    if (running / shared.total > uniform) {
      atomicMin(&shared.drawn, i);
      break;
    }
  }
  __syncthreads();  // drawn is known
  return index_of(words[min(shared.drawn, kept - 1)]);
}

template <typename T>
__global__ void __launch_bounds__(kPickThreads) pick_kernel(const T* logits, const PickArgs args) {
  __shared__ float best[kReduceThreads];
  __shared__ int index[kReduceThreads];
  __shared__ DrawShared shared;
  wait_for_previous();
  allow_next();
  uint64_t* words = reinterpret_cast<uint64_t*>(dynamic_shared());
  const int thread = static_cast<int>(threadIdx.x);
  const Sampling sampling = *args.sampling;
  float top = -INFINITY, bad = 0.0f;
  int at = args.n;
  if (thread < kReduceThreads) {
    for (int i = thread; i < args.n; i += kReduceThreads) {
      const float x = widen(logits[i]);
      if (!isfinite(x)) bad = 1.0f;
      if (x > top) top = x, at = i;
    }
  }
  if (block_max(bad) > 0.0f) {
    if (thread == 0) {
      *args.code = 0;
      if (*args.failure == 0) *args.failure = 1 + *args.frame * 16 + args.codebook;
    }
    return;
  }
  const float largest = block_max(top);
  if (sampling.temperature == 0.0f) {
    if (thread < kReduceThreads) best[thread] = top, index[thread] = at;
    __syncthreads();  // every thread's best is written
    if (thread != 0) return;
    for (int other = 1; other < kReduceThreads; ++other) {
      if (best[other] > top || (best[other] == top && index[other] < at))
        top = best[other], at = index[other];
    }
    *args.code = at;
    return;
  }
  const float scaled_top = largest / sampling.temperature;
  float sum = 0.0f;
  if (thread < kReduceThreads) {
    for (int i = thread; i < args.n; i += kReduceThreads) {
      const float weight = expf(widen(logits[i]) / sampling.temperature - scaled_top);
      words[i] = __float_as_uint(weight);
      sum += weight;
    }
  }
  const float total = block_sum(sum);
  for (int i = thread; i < args.sorted; i += kPickThreads) {
    words[i] = i < args.n ? rank_word(__uint_as_float(static_cast<uint32_t>(words[i])) / total, i) : 0;
  }
  __syncthreads();  // all words are written
  sort_descending(words, args.sorted);
  const float uniform =
      draw_uniform(sampling.seed, static_cast<uint32_t>(*args.frame), static_cast<uint32_t>(args.codebook));
  const int drawn = draw(shared, words, args.n, args.sorted, sampling, uniform);
  if (thread == 0) *args.code = drawn;
}

}  // namespace

void pick_code(LaunchQueue& queue, const View& code, const View& logits, const PickState& state,
               int64_t codebook) {
  const int n = static_cast<int>(logits.elements());
  INVARIANT(n >= 1 && n <= kMaxCandidates, n, " candidates");
  int sorted = 1;
  while (sorted < n) sorted *= 2;
  const PickArgs args{
      .code = rows_of<int32_t>(code).data,
      .n = n,
      .sorted = sorted,
      .sampling = reinterpret_cast<const Sampling*>(rows_of<const uint8_t>(state.sampling).data),
      .frame = rows_of<const int32_t>(state.frame).data,
      .failure = rows_of<int32_t>(state.failure).data,
      .codebook = static_cast<int>(codebook)};
  with_type(logits.type, [&](auto t) {
    using T = decltype(t);
    launch(queue, pick_kernel<T>,
           {.block = kPickThreads, .shared = static_cast<size_t>(sorted) * sizeof(uint64_t)},
           static_cast<const T*>(logits.data), args);
  });
}

}  // namespace drama3
