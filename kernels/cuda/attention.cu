// Attention over a cache: partial softmax over fixed chunks of positions, merged in ascending order.
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/turn.cuh"
#include "lib/base/check.h"

namespace drama3 {
namespace {

constexpr int kThreads = 256;
static_assert(kChunk == 32 && kThreads == 8 * kChunk, "eight lanes a key, a lane of one warp each weight");

// Heads of a block: as many as its threads can hold pairs of output columns of.
template <int Dim>
struct Split {
  static constexpr int kPairs = Dim / 2;
  static constexpr int kHeads = kThreads / kPairs < kMaxGroup ? kThreads / kPairs : kMaxGroup;
};

// What a block keeps in shared memory while it works on one row and some heads of one key/value head.
template <int Dim>
struct AttendShared {
  __align__(16) float query[Split<Dim>::kHeads][Dim];
  __align__(16) float key[Dim];    // the new row's, turned
  float line[kThreads / 32][Dim];  // of a warp that turns a head
  float weight[Split<Dim>::kHeads][kChunk];
  float top[Split<Dim>::kHeads];
  float sum[Split<Dim>::kHeads];
  bool last;
};

// The heads of one block.
struct Heads {
  int kv_head = 0;
  int first = 0;  // of all query heads
  int count = 0;
};

template <int Dim>
__host__ __device__ inline int blocks_of_group(int group) {
  return (group + Split<Dim>::kHeads - 1) / Split<Dim>::kHeads;
}

template <int Dim>
__device__ inline Heads heads_of(const AttendArgs& args, int block) {
  const int group = args.heads / args.kv_heads;
  const int parts = blocks_of_group<Dim>(group);
  const int part = block % parts;
  return {block / parts, block / parts * group + part * Split<Dim>::kHeads,
          min(Split<Dim>::kHeads, group - part * Split<Dim>::kHeads)};
}

// Positions that a row sees.
struct Sight {
  int first = 0;
  int last = 0;
};

__device__ inline Sight sight_of(const AttendArgs& args, int position) {
  return {args.window > 0 ? max(0, position - args.window + 1) : 0, position};
}

// Two neighbouring elements, widened.
template <typename T>
__device__ inline float2 widen2(uint32_t bits);
template <>
__device__ inline float2 widen2<bf16>(uint32_t bits) {
  return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u));
}
template <>
__device__ inline float2 widen2<f16>(uint32_t bits) {
  union {
    uint32_t bits;
    f16 values[2];
  } pair;
  pair.bits = bits;
  return make_float2(widen(pair.values[0]), widen(pair.values[1]));
}

// The lane's columns of its key of a chunk, raw; eight lanes share a key. Loaded before the queries are
// known.
template <typename T, int Dim>
struct ChunkKeys {
  static constexpr int kSteps = (Dim + 63) / 64;  // of eight columns for each of the eight lanes
  uint4 columns[kSteps];

  __device__ static int column(int step) { return (step * 8 + static_cast<int>(threadIdx.x) % 8) * 8; }

  // The row at `fresh` (or -1) is not in the cache yet.
  __device__ void load(const AttendArgs& args, const Heads& heads, int chunk, const Sight& sight, int fresh) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int position = chunk * kChunk + warp * 4 + lane / 8;
    const bool cached = position >= sight.first && position <= sight.last && position != fresh;
    const int64_t stride = static_cast<int64_t>(args.kv_heads) * Dim;
    const T* key = static_cast<const T*>(args.keys) + position % args.slots * stride + heads.kv_head * Dim;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const bool there = cached && column(step) < Dim;
      columns[step] = there ? *reinterpret_cast<const uint4*>(key + column(step)) : make_uint4(0, 0, 0, 0);
    }
  }
};

// Scores, then unnormalised weights of one chunk for the block's heads: shared.weight, top and sum. The row
// at `fresh` (or -1) has its key in shared.key.
template <typename T, int Dim>
__device__ void weigh_chunk(AttendShared<Dim>& shared, const AttendArgs& args, const Heads& heads,
                            const ChunkKeys<T, Dim>& keys, int chunk, const Sight& sight, int fresh) {
  constexpr int kHeads = Split<Dim>::kHeads;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int index = warp * 4 + lane / 8;  // key of the chunk
  const int position = chunk * kChunk + index;
  const bool seen = position >= sight.first && position <= sight.last;
  float score[kHeads] = {};
  if (seen) {
#pragma unroll
    for (int step = 0; step < ChunkKeys<T, Dim>::kSteps; ++step) {
      const int d = ChunkKeys<T, Dim>::column(step);
      if (d >= Dim) break;
      union {
        uint4 bits;
        T values[8];
      } word;
      word.bits = keys.columns[step];
      float k[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) k[i] = widen(word.values[i]);
      if (position == fresh) load8(k, shared.key + d);
#pragma unroll
      for (int head = 0; head < kHeads; ++head) {
        if (head < heads.count) {
          float q[8];
          load8(q, shared.query[head] + d);
#pragma unroll
          for (int i = 0; i < 8; ++i) score[head] = fmaf(q[i], k[i], score[head]);
        }
      }
    }
  }
#pragma unroll
  for (int head = 0; head < kHeads; ++head) {
    if (head < heads.count) {
      const float dot = lanes_sum<8>(score[head]);
      if (lane % 8 == 0) shared.weight[head][index] = seen ? dot * args.scale : -INFINITY;
    }
  }
  __syncthreads();  // scores of all keys are written
  if (warp < heads.count) {
    const float mine = shared.weight[warp][lane];
    const float top = lanes_max(mine);
    const float weight = expf(mine - top);
    shared.weight[warp][lane] = weight;
    const float sum = lanes_sum(weight);
    if (lane == 0) {
      shared.top[warp] = top;
      shared.sum[warp] = sum;
    }
  }
  __syncthreads();  // weights are written
}

// A thread's pair of columns of the chunk's values, raw; loaded before the scores are known. The row at
// `fresh` is loaded alone, later.
template <typename T, int Dim>
struct ChunkValues {
  uint32_t pair[kChunk];

  __device__ void load(const AttendArgs& args, const Heads& heads, int chunk, const Sight& sight, int fresh) {
    const int64_t stride = static_cast<int64_t>(args.kv_heads) * Dim;
    const int column = heads.kv_head * Dim + 2 * (static_cast<int>(threadIdx.x) % Split<Dim>::kPairs);
    const T* values = static_cast<const T*>(args.values) + column;
    int slot = chunk * kChunk % args.slots;
#pragma unroll
    for (int index = 0; index < kChunk; ++index) {
      const int position = chunk * kChunk + index;
      const bool cached = position >= sight.first && position <= sight.last && position != fresh;
      pair[index] = cached ? *reinterpret_cast<const uint32_t*>(values + slot * stride) : 0;
      slot = slot + 1 == args.slots ? 0 : slot + 1;
    }
  }

  __device__ void load_fresh(const AttendArgs& args, const Heads& heads, int chunk, int fresh) {
    if (fresh / kChunk != chunk) return;
    const int column = heads.kv_head * Dim + 2 * (static_cast<int>(threadIdx.x) % Split<Dim>::kPairs);
    const uint32_t value = *reinterpret_cast<const uint32_t*>(static_cast<const T*>(args.value) + column);
#pragma unroll
    for (int index = 0; index < kChunk; ++index) {
      if (chunk * kChunk + index == fresh) pair[index] = value;
    }
  }
};

// The chunk's weighted values for this thread's columns and head, keys in ascending order; unseen ones weigh
// 0.
template <typename T, int Dim>
__device__ float2 weigh_values(const AttendShared<Dim>& shared, const ChunkValues<T, Dim>& values, int head) {
  float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll
  for (int index = 0; index < kChunk; index += 4) {
    const float4 weights = *reinterpret_cast<const float4*>(&shared.weight[head][index]);
    const float weight[4] = {weights.x, weights.y, weights.z, weights.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 v = widen2<T>(values.pair[index + i]);
      sum.x = fmaf(weight[i], v.x, sum.x);
      sum.y = fmaf(weight[i], v.y, sum.y);
    }
  }
  return sum;
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

// The block's queries as F32; in the fused form turned, with the new row's key beside them.
template <typename T, int Dim, bool Fused>
__device__ void stage_queries(AttendShared<Dim>& shared, const AttendArgs& args, const Heads& heads, int row,
                              int position) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
  for (int i = warp; i < heads.count + (Fused ? 1 : 0); i += kThreads / 32) {
    const bool is_key = i == heads.count;
    const T* in = is_key ? static_cast<const T*>(args.key) + heads.kv_head * Dim
                         : static_cast<const T*>(args.query) + row * args.query_stride +
                               static_cast<int64_t>(heads.first + i) * args.head_stride + args.head_offset;
    if (Fused) {
      turn_head<T, Dim>(is_key ? shared.key : shared.query[i], in, shared.line[warp],
                        is_key ? args.key_turn : args.query_turn, position);
    } else {
      for (int d = lane; d < Dim; d += 32) shared.query[i][d] = widen(in[d]);
    }
  }
}

// Block = one row and some heads of a key/value head; chunks one after the other.
template <typename T, int Dim>
__global__ void __launch_bounds__(kThreads) attend_rows_kernel(const AttendArgs args) {
  __shared__ AttendShared<Dim> shared;
  wait_for_previous();
  allow_next();
  const Heads heads = heads_of<Dim>(args, static_cast<int>(blockIdx.x));
  const int row = static_cast<int>(blockIdx.y);
  const int position = *args.position + row;
  const Sight sight = sight_of(args, position);
  stage_queries<T, Dim, false>(shared, args, heads, row, position);
  __syncthreads();  // queries are staged
  const int pair = static_cast<int>(threadIdx.x) % Split<Dim>::kPairs;
  const int head = static_cast<int>(threadIdx.x) / Split<Dim>::kPairs;
  Running running;
  for (int chunk = sight.first / kChunk; chunk <= sight.last / kChunk; ++chunk) {
    ChunkKeys<T, Dim> keys;
    ChunkValues<T, Dim> values;
    keys.load(args, heads, chunk, sight, -1);
    values.load(args, heads, chunk, sight, -1);
    weigh_chunk<T, Dim>(shared, args, heads, keys, chunk, sight, -1);
    if (head < heads.count) {
      merge(running, shared.top[head], shared.sum[head], weigh_values<T, Dim>(shared, values, head));
    }
    __syncthreads();  // the chunk's weights are used
  }
  if (head < heads.count) write_pair<T, Dim>(args, row, heads.first + head, pair, running);
}

// The new row's turned key and its value go to the cache.
template <typename T, int Dim>
__device__ void append_row(const AttendShared<Dim>& shared, const AttendArgs& args, int kv_head,
                           int position) {
  const int64_t at = position % args.slots * static_cast<int64_t>(args.kv_heads) * Dim + kv_head * Dim;
  for (int d = static_cast<int>(threadIdx.x); d < Dim; d += kThreads) {
    static_cast<T*>(args.keys)[at + d] = narrow<T>(shared.key[d]);
    static_cast<T*>(args.values)[at + d] = static_cast<const T*>(args.value)[kv_head * Dim + d];
  }
}

// Merges the partial results of all chunks, in ascending order, and writes the row.
template <typename T, int Dim>
__device__ void merge_partials(const AttendArgs& args, const Heads& heads, int chunks) {
  constexpr int kRecord = Dim + 2;
  const int pair = static_cast<int>(threadIdx.x) % Split<Dim>::kPairs;
  const int head = static_cast<int>(threadIdx.x) / Split<Dim>::kPairs;
  if (head >= heads.count) return;
  Running running;
#pragma unroll 4  // the loads of several chunks are in flight together
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const float* at =
        args.partial + (static_cast<int64_t>(chunk) * args.heads + heads.first + head) * kRecord;
    merge(running, __ldcg(at + Dim), __ldcg(at + Dim + 1),
          make_float2(__ldcg(at + 2 * pair), __ldcg(at + 2 * pair + 1)));
  }
  write_pair<T, Dim>(args, 0, heads.first + head, pair, running);
}

// Block = some heads of a key/value head and every gridDim.y-th chunk of the one row; the last block to
// finish merges.
template <typename T, int Dim, bool Fused>
__global__ void __launch_bounds__(kThreads, 2) attend_split_kernel(const AttendArgs args) {
  __shared__ AttendShared<Dim> shared;
  const Heads heads = heads_of<Dim>(args, static_cast<int>(blockIdx.x));
  const int position = *args.position;
  const int fresh = Fused ? position : -1;
  const Sight sight = sight_of(args, position);
  const int first_chunk = sight.first / kChunk, last_chunk = sight.last / kChunk;
  const int chunks = last_chunk - first_chunk + 1;
  const int split = static_cast<int>(blockIdx.y), splits = static_cast<int>(gridDim.y);
  const bool works = split < chunks;
  // The position and the rows of the cache were written at least two launches ago: they need no wait. In the
  // form that is not fused the launch before wrote the newest row.
  ChunkKeys<T, Dim> keys;
  ChunkValues<T, Dim> values;
  if (Fused && works) {
    keys.load(args, heads, first_chunk + split, sight, fresh);
    values.load(args, heads, first_chunk + split, sight, fresh);
    if (threadIdx.x < 32) prefetch_turn<Dim>(args.query_turn, position);
    if (threadIdx.x / 32 == 1) prefetch_turn<Dim>(args.key_turn, position);
  }
  wait_for_previous();
  allow_next();
  if (!works) return;
  if (Fused) {
    values.load_fresh(args, heads, first_chunk + split, fresh);
  } else {
    keys.load(args, heads, first_chunk + split, sight, fresh);
    values.load(args, heads, first_chunk + split, sight, fresh);
  }
  stage_queries<T, Dim, Fused>(shared, args, heads, 0, position);
  __syncthreads();  // queries and the new key are staged
  const int pair = static_cast<int>(threadIdx.x) % Split<Dim>::kPairs;
  const int head = static_cast<int>(threadIdx.x) / Split<Dim>::kPairs;
  for (int chunk = first_chunk + split; chunk <= last_chunk; chunk += splits) {
    if (chunk >= first_chunk + splits) {
      keys.load(args, heads, chunk, sight, fresh);
      values.load(args, heads, chunk, sight, fresh);
      if (Fused) values.load_fresh(args, heads, chunk, fresh);
    }
    weigh_chunk<T, Dim>(shared, args, heads, keys, chunk, sight, fresh);
    if (head < heads.count) {
      const float2 sum = weigh_values<T, Dim>(shared, values, head);
      float* record =
          args.partial +
          (static_cast<int64_t>(chunk - first_chunk) * args.heads + heads.first + head) * (Dim + 2);
      __stcg(record + 2 * pair, sum.x);
      __stcg(record + 2 * pair + 1, sum.y);
      if (pair == 0) {
        __stcg(record + Dim, shared.top[head]);
        __stcg(record + Dim + 1, shared.sum[head]);
      }
    }
    __syncthreads();  // the chunk's weights are used
  }
  if (Fused && split == (chunks - 1) % splits && heads.first % (args.heads / args.kv_heads) == 0) {
    append_row<T, Dim>(shared, args, heads.kv_head, position);
  }
  __syncthreads();  // the block's partials are written
  if (threadIdx.x == 0) {
    const int expected = min(chunks, splits) - 1;
    shared.last = arrive(args.arrivals + blockIdx.x) == expected;
    if (shared.last) args.arrivals[blockIdx.x] = 0;
  }
  __syncthreads();  // all threads read past the arrival
  if (!shared.last) return;
  merge_partials<T, Dim>(args, heads, chunks);
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

template <int Dim>
unsigned blocks_of_heads(const AttendArgs& args) {
  return static_cast<unsigned>(args.kv_heads * blocks_of_group<Dim>(args.heads / args.kv_heads));
}

template <typename T>
void attend_rows_of(LaunchQueue& queue, int head_dim, const AttendArgs& args) {
  with_head_dim(head_dim, [&](auto dim) {
    launch(queue, attend_rows_kernel<T, decltype(dim)::value>,
           {.grid = dim3(blocks_of_heads<decltype(dim)::value>(args), static_cast<unsigned>(args.rows)),
            .block = kThreads},
           args);
  });
}

template <typename T>
void attend_split_of(LaunchQueue& queue, int head_dim, const AttendArgs& args, bool fused) {
  const int seen = args.window > 0 ? args.window + kChunk : args.slots;
  const int chunks = (seen + kChunk - 1) / kChunk;
  with_head_dim(head_dim, [&](auto dim) {
    constexpr int kDim = decltype(dim)::value;
    const Geometry geometry{
        .grid = dim3(blocks_of_heads<kDim>(args), static_cast<unsigned>(std::min(chunks, kMaxSplits))),
        .block = kThreads};
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
  INVARIANT(args.heads <= args.kv_heads * kMaxGroup && args.heads <= kMaxHeads, args.heads, " heads on ",
            args.kv_heads);
  if (type == DType::kBF16) return attend_split_of<bf16>(queue, head_dim, args, fused);
  attend_split_of<f16>(queue, head_dim, args, fused);
}

void turn_heads(LaunchQueue& queue, DType type, int head_dim, const TurnArgs& args) {
  if (type == DType::kBF16) return turn_heads_of<bf16>(queue, head_dim, args);
  turn_heads_of<f16>(queue, head_dim, args);
}

}  // namespace drama3
