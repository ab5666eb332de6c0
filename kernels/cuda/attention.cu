// Attention over a cache: partial softmax over fixed chunks of positions, merged in ascending order.
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/turn.cuh"
#include "lib/base/check.h"

namespace drama3 {
namespace {

constexpr int kThreads = 256;

// Threads of a block as pairs of dims times groups of heads, for the product with the values.
template <int Dim>
struct ValueSplit {
  static constexpr int kPairs = Dim / 2;
  static constexpr int kGroups = kThreads / kPairs;
  static constexpr int kHeads = kGroups >= kMaxGroup ? 1 : kMaxGroup / kGroups;  // heads of a thread
};

// What a block keeps in shared memory while it works on one row and one key/value head.
template <int Dim>
struct AttendShared {
  float query[kMaxGroup][Dim];
  float line[kThreads / 32][Dim];
  float weight[kMaxGroup][kChunk];
  float top[kMaxGroup];
  float sum[kMaxGroup];
  bool last;
};

// Positions that a row sees.
struct Sight {
  int first = 0;
  int last = 0;
};

__device__ inline Sight sight_of(const AttendArgs& args, int position) {
  return {args.window > 0 ? max(0, position - args.window + 1) : 0, position};
}

// Two neighbouring elements, widened.
__device__ inline float2 load2(const bf16* at) {
  const uint32_t bits = *reinterpret_cast<const uint32_t*>(at);
  return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u));
}
__device__ inline float2 load2(const f16* at) { return make_float2(widen(at[0]), widen(at[1])); }

// Scores, then unnormalised weights of one chunk for all heads of the group: shared.weight, top and sum.
template <typename T, int Dim>
__device__ void weigh_chunk(AttendShared<Dim>& shared, const AttendArgs& args, int kv_head, int chunk,
                            const Sight& sight) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int group = args.heads / args.kv_heads;
  const int64_t stride = static_cast<int64_t>(args.kv_heads) * Dim;
  const int index = warp * 8 + lane / 4;  // key of the chunk; four lanes share it
  const int position = chunk * kChunk + index;
  const bool seen = position >= sight.first && position <= sight.last;
  float score[kMaxGroup] = {};
  if (seen) {
    const T* key = static_cast<const T*>(args.keys) + position % args.slots * stride + kv_head * Dim;
#pragma unroll
    for (int step = 0; step < Dim / 32; ++step) {
      const int d = (step * 4 + lane % 4) * 8;
      float k[8];
      load8(k, key + d);
#pragma unroll
      for (int head = 0; head < kMaxGroup; ++head) {
        if (head < group) {
          float q[8];
          load8(q, shared.query[head] + d);
#pragma unroll
          for (int i = 0; i < 8; ++i) score[head] = fmaf(q[i], k[i], score[head]);
        }
      }
    }
  }
#pragma unroll
  for (int head = 0; head < kMaxGroup; ++head) {
    if (head < group) {
      const float dot = lanes_sum<4>(score[head]);
      if (lane % 4 == 0) shared.weight[head][index] = seen ? dot * args.scale : -INFINITY;
    }
  }
  __syncthreads();  // scores of all keys are written
  if (warp < group) {
    const float low = shared.weight[warp][lane], high = shared.weight[warp][lane + 32];
    const float top = lanes_max(fmaxf(low, high));
    const float a = expf(low - top), b = expf(high - top);
    shared.weight[warp][lane] = a;
    shared.weight[warp][lane + 32] = b;
    const float sum = lanes_sum(a + b);
    if (lane == 0) {
      shared.top[warp] = top;
      shared.sum[warp] = sum;
    }
  }
  __syncthreads();  // weights are written
}

// Adds the chunk's weighted values for this thread's dims and heads to o, keys in ascending order.
template <typename T, int Dim>
__device__ void weigh_values(float2 (&o)[ValueSplit<Dim>::kHeads], const AttendShared<Dim>& shared,
                             const AttendArgs& args, int kv_head, int chunk, const Sight& sight) {
  using Split = ValueSplit<Dim>;
  const int group = args.heads / args.kv_heads;
  const int pair = static_cast<int>(threadIdx.x) % Split::kPairs;
  const int first_head = static_cast<int>(threadIdx.x) / Split::kPairs * Split::kHeads;
  const int64_t stride = static_cast<int64_t>(args.kv_heads) * Dim;
  const int begin = max(0, sight.first - chunk * kChunk);
  const int end = min(kChunk, sight.last + 1 - chunk * kChunk);
#pragma unroll
  for (int i = 0; i < Split::kHeads; ++i) o[i] = make_float2(0.0f, 0.0f);
  if (first_head >= group) return;
  const T* values = static_cast<const T*>(args.values) + kv_head * Dim;
  int slot = (chunk * kChunk + begin) % args.slots;
#pragma unroll 32  // so many value rows are in flight at once
  for (int index = begin; index < end; ++index) {
    const float2 v = load2(values + slot * stride + 2 * pair);
    slot = slot + 1 == args.slots ? 0 : slot + 1;
#pragma unroll
    for (int i = 0; i < Split::kHeads; ++i) {
      const float weight = first_head + i < group ? shared.weight[first_head + i][index] : 0.0f;
      o[i].x = fmaf(weight, v.x, o[i].x);
      o[i].y = fmaf(weight, v.y, o[i].y);
    }
  }
}

// A running softmax: maximum, sum of weights and weighted values so far.
struct Running {
  float top = -INFINITY;
  float sum = 0.0f;
  float2 value = make_float2(0.0f, 0.0f);
};

// Adds one chunk.
__device__ inline void merge(Running& running, float top, float sum, float2 value) {
  const float both = fmaxf(running.top, top);
  const float old_scale = expf(running.top - both), scale = expf(top - both);
  running.sum = running.sum * old_scale + sum * scale;
  running.value.x = running.value.x * old_scale + value.x * scale;
  running.value.y = running.value.y * old_scale + value.y * scale;
  running.top = both;
}

// The head's two output elements: normalised, rounded, gated.
template <typename T, int Dim>
__device__ inline void write_pair(const AttendArgs& args, int row, int head, int pair,
                                  const Running& running) {
  float pieces[2] = {rounded<T>(running.value.x / running.sum), rounded<T>(running.value.y / running.sum)};
  T* out = static_cast<T*>(args.out) + row * args.out_stride + head * Dim + 2 * pair;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (args.gate != nullptr) {
      const T* gate = static_cast<const T*>(args.gate) + head * args.gate_stride + args.gate_offset;
      pieces[i] *= sigmoid(widen(gate[2 * pair + i]));
    }
    out[i] = narrow<T>(pieces[i]);
  }
}

// The queries of the group as F32, turned in the fused form.
template <typename T, int Dim>
__device__ void stage_queries(AttendShared<Dim>& shared, const AttendArgs& args, int row, int kv_head,
                              int position, bool fused) {
  const int group = args.heads / args.kv_heads;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (warp >= group) return;
  const int head = kv_head * group + warp;
  const T* query = static_cast<const T*>(args.query) + row * args.query_stride +
                   static_cast<int64_t>(head) * args.head_stride + args.head_offset;
  if (fused) {
    turn_head<T, Dim>(shared.query[warp], query, shared.line[warp], args.query_turn, position);
  } else {
    for (int d = lane; d < Dim; d += 32) shared.query[warp][d] = widen(query[d]);
  }
}

// Block = one row and one key/value head; chunks one after the other.
template <typename T, int Dim>
__global__ void __launch_bounds__(kThreads) attend_rows_kernel(const AttendArgs args) {
  using Split = ValueSplit<Dim>;
  __shared__ AttendShared<Dim> shared;
  wait_for_previous();
  allow_next();
  const int kv_head = static_cast<int>(blockIdx.x);
  const int row = static_cast<int>(blockIdx.y);
  const int group = args.heads / args.kv_heads;
  const int position = *args.position + row;
  const Sight sight = sight_of(args, position);
  stage_queries<T, Dim>(shared, args, row, kv_head, position, false);
  __syncthreads();  // queries are staged
  Running running[Split::kHeads];
  const int first_head = static_cast<int>(threadIdx.x) / Split::kPairs * Split::kHeads;
  for (int chunk = sight.first / kChunk; chunk <= sight.last / kChunk; ++chunk) {
    float2 o[Split::kHeads];
    weigh_chunk<T, Dim>(shared, args, kv_head, chunk, sight);
    weigh_values<T, Dim>(o, shared, args, kv_head, chunk, sight);
#pragma unroll
    for (int i = 0; i < Split::kHeads; ++i) {
      const int head = first_head + i;
      if (head < group) merge(running[i], shared.top[head], shared.sum[head], o[i]);
    }
    __syncthreads();  // the chunk's weights are used
  }
  const int pair = static_cast<int>(threadIdx.x) % Split::kPairs;
  for (int i = 0; i < Split::kHeads; ++i) {
    const int head = first_head + i;
    if (head < group) write_pair<T, Dim>(args, row, kv_head * group + head, pair, running[i]);
  }
}

// The new row's key, turned, and its value go to the cache.
template <typename T, int Dim>
__device__ void append_row(AttendShared<Dim>& shared, const AttendArgs& args, int kv_head, int position) {
  const int64_t at = position % args.slots * static_cast<int64_t>(args.kv_heads) * Dim + kv_head * Dim;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (warp == 0) {
    turn_head<T, Dim>(static_cast<T*>(args.keys) + at, static_cast<const T*>(args.key) + kv_head * Dim,
                      shared.line[0], args.key_turn, position);
  }
  for (int d = static_cast<int>(threadIdx.x); d < Dim; d += kThreads) {
    static_cast<T*>(args.values)[at + d] = static_cast<const T*>(args.value)[kv_head * Dim + d];
  }
}

// Merges the partial results of all chunks of a key/value head, in ascending order, and writes the row.
template <typename T, int Dim>
__device__ void merge_partials(const AttendArgs& args, int kv_head, int first_chunk, int last_chunk) {
  using Split = ValueSplit<Dim>;
  constexpr int kRecord = Dim + 2;
  const int group = args.heads / args.kv_heads;
  const int pair = static_cast<int>(threadIdx.x) % Split::kPairs;
  const int first_head = static_cast<int>(threadIdx.x) / Split::kPairs * Split::kHeads;
  const int chunks = last_chunk - first_chunk + 1;
  Running running[Split::kHeads];
#pragma unroll 4  // the loads of several chunks and all heads are in flight together
  for (int chunk = 0; chunk < chunks; ++chunk) {
#pragma unroll
    for (int i = 0; i < Split::kHeads; ++i) {
      const int head = first_head + i;
      if (head < group) {
        const float* at =
            args.partial + (static_cast<int64_t>(chunk) * args.heads + kv_head * group + head) * kRecord;
        merge(running[i], __ldcg(at + Dim), __ldcg(at + Dim + 1),
              make_float2(__ldcg(at + 2 * pair), __ldcg(at + 2 * pair + 1)));
      }
    }
  }
  for (int i = 0; i < Split::kHeads; ++i) {
    const int head = first_head + i;
    if (head < group) write_pair<T, Dim>(args, 0, kv_head * group + head, pair, running[i]);
  }
}

// Block = one key/value head and every gridDim.y-th chunk of the one row; the last block to finish merges.
template <typename T, int Dim, bool Fused>
__global__ void __launch_bounds__(kThreads) attend_split_kernel(const AttendArgs args) {
  using Split = ValueSplit<Dim>;
  __shared__ AttendShared<Dim> shared;
  wait_for_previous();
  allow_next();
  const int kv_head = static_cast<int>(blockIdx.x);
  const int group = args.heads / args.kv_heads;
  const int position = *args.position;
  const Sight sight = sight_of(args, position);
  const int first_chunk = sight.first / kChunk, last_chunk = sight.last / kChunk;
  const int chunks = last_chunk - first_chunk + 1;
  const int split = static_cast<int>(blockIdx.y), splits = static_cast<int>(gridDim.y);
  if (split >= chunks) return;
  stage_queries<T, Dim>(shared, args, 0, kv_head, position, Fused);
  __syncthreads();  // queries are staged
  const int first_head = static_cast<int>(threadIdx.x) / Split::kPairs * Split::kHeads;
  const int pair = static_cast<int>(threadIdx.x) % Split::kPairs;
  for (int chunk = first_chunk + split; chunk <= last_chunk; chunk += splits) {
    if (Fused && chunk == last_chunk) {
      append_row<T, Dim>(shared, args, kv_head, position);
      __syncthreads();  // the new key and value are in the cache before this block reads them
    }
    float2 o[Split::kHeads];
    weigh_chunk<T, Dim>(shared, args, kv_head, chunk, sight);
    weigh_values<T, Dim>(o, shared, args, kv_head, chunk, sight);
    for (int i = 0; i < Split::kHeads; ++i) {
      const int head = first_head + i;
      if (head >= group) break;
      float* record =
          args.partial +
          (static_cast<int64_t>(chunk - first_chunk) * args.heads + kv_head * group + head) * (Dim + 2);
      __stcg(record + 2 * pair, o[i].x);
      __stcg(record + 2 * pair + 1, o[i].y);
      if (pair == 0) {
        __stcg(record + Dim, shared.top[head]);
        __stcg(record + Dim + 1, shared.sum[head]);
      }
    }
    __syncthreads();  // the chunk's weights are used
  }
  __threadfence();  // this block's partials are visible before its arrival is
  __syncthreads();
  if (threadIdx.x == 0) {
    const int expected = min(chunks, splits) - 1;
    shared.last = atomicAdd(args.arrivals + kv_head, 1) == expected;
    if (shared.last) args.arrivals[kv_head] = 0;
  }
  __syncthreads();
  if (!shared.last) return;
  __threadfence();  // the other blocks' partials are read after their arrivals
  merge_partials<T, Dim>(args, kv_head, first_chunk, last_chunk);
}

// One warp a head of a row.
template <typename T, int Dim>
__global__ void __launch_bounds__(kThreads) turn_heads_kernel(const TurnArgs args) {
  __shared__ float line[kThreads / 32][Dim];
  wait_for_previous();
  allow_next();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int index = static_cast<int>(blockIdx.x) * (kThreads / 32) + warp;
  if (index >= args.rows * args.heads) return;
  const int row = index / args.heads, head = index % args.heads;
  const T* in = static_cast<const T*>(args.in) + row * args.in_stride +
                static_cast<int64_t>(head) * args.head_stride + args.head_offset;
  turn_head<T, Dim>(static_cast<T*>(args.out) + row * args.out_stride + head * Dim, in, line[warp], args.turn,
                    *args.position + row);
}

// Calls run with the head width as a compile-time constant.
template <typename Run>
void with_head_dim(int head_dim, Run run) {
  switch (head_dim) {
    case 256:
      return run(std::integral_constant<int, 256>{});
    case 128:
      return run(std::integral_constant<int, 128>{});
    case 64:
      return run(std::integral_constant<int, 64>{});
    case 32:
      return run(std::integral_constant<int, 32>{});
    default:
      fail("attention on CUDA: expected heads of 32, 64, 128 or 256 columns, got ", head_dim);
  }
}

template <typename T>
void attend_rows_of(LaunchQueue& queue, int head_dim, const AttendArgs& args) {
  with_head_dim(head_dim, [&](auto dim) {
    launch(queue, attend_rows_kernel<T, decltype(dim)::value>,
           {.grid = dim3(static_cast<unsigned>(args.kv_heads), static_cast<unsigned>(args.rows)),
            .block = kThreads},
           args);
  });
}

template <typename T>
void attend_split_of(LaunchQueue& queue, int head_dim, const AttendArgs& args, bool fused) {
  const int seen = args.window > 0 ? args.window + kChunk : args.slots;
  const int chunks = (seen + kChunk - 1) / kChunk;
  const Geometry geometry{
      .grid = dim3(static_cast<unsigned>(args.kv_heads), static_cast<unsigned>(std::min(chunks, kMaxSplits))),
      .block = kThreads};
  with_head_dim(head_dim, [&](auto dim) {
    constexpr int kDim = decltype(dim)::value;
    launch(queue, fused ? attend_split_kernel<T, kDim, true> : attend_split_kernel<T, kDim, false>, geometry,
           args);
  });
}

template <typename T>
void turn_heads_of(LaunchQueue& queue, int head_dim, const TurnArgs& args) {
  const int warps = kThreads / 32;
  with_head_dim(head_dim, [&](auto dim) {
    launch(queue, turn_heads_kernel<T, decltype(dim)::value>,
           {.grid = dim3(static_cast<unsigned>((args.rows * args.heads + warps - 1) / warps)),
            .block = kThreads},
           args);
  });
}

}  // namespace

void attend_rows(LaunchQueue& queue, DType type, int head_dim, const AttendArgs& args) {
  INVARIANT(args.heads <= args.kv_heads * kMaxGroup, args.heads, " heads on ", args.kv_heads);
  if (type == DType::kBF16) return attend_rows_of<bf16>(queue, head_dim, args);
  attend_rows_of<f16>(queue, head_dim, args);
}

void attend_split(LaunchQueue& queue, DType type, int head_dim, const AttendArgs& args, bool fused) {
  INVARIANT(args.heads <= args.kv_heads * kMaxGroup, args.heads, " heads on ", args.kv_heads);
  if (type == DType::kBF16) return attend_split_of<bf16>(queue, head_dim, args, fused);
  attend_split_of<f16>(queue, head_dim, args, fused);
}

void turn_heads(LaunchQueue& queue, DType type, int head_dim, const TurnArgs& args) {
  if (type == DType::kBF16) return turn_heads_of<bf16>(queue, head_dim, args);
  turn_heads_of<f16>(queue, head_dim, args);
}

}  // namespace drama3
