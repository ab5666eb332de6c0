// Gated delta rule: causal convolution, gates, recurrence with F32 state, gated norm; and all of it for one
// row.
#include "kernels/cuda/common/typed.cuh"
#include "kernels/cuda/delta.cuh"
#include "lib/base/check.h"

namespace drama3 {
namespace {

constexpr int kKeyGroups = 4;                         // threads that share a state column
constexpr int kGroupKeys = kDeltaWidth / kKeyGroups;  // state rows of a thread
constexpr float kQueryScale = 0.08838834764831845f;   // 128^-0.5

// exp(-exp(a_log) * softplus(a + dt_bias)).
__device__ inline float decay_of(float a, float a_log, float dt_bias) {
  const float u = a + dt_bias;
  const float softplus = u > 20.0f ? u : log1pf(expf(u));
  return expf(-expf(a_log) * softplus);
}

// A channel's taps and carried inputs, in registers: loops over taps are unrolled to the largest number of
// them.
struct Taps {
  float weight[kMaxTaps];       // the last is the current row's; unused ones are 0 and come first
  float history[kMaxTaps - 1];  // oldest first, in the same places as the weights
};

__device__ inline void load_weights(Taps& taps, const float* conv, int count, int channels, int channel) {
#pragma unroll
  for (int i = 0; i < kMaxTaps; ++i) {
    const int tap = i - (kMaxTaps - count);
    taps.weight[i] = tap >= 0 ? conv[tap * channels + channel] : 0.0f;
  }
}

__device__ inline void load_history(Taps& taps, const Rows<bf16>& tail, int count, int channel) {
#pragma unroll
  for (int i = 0; i + 1 < kMaxTaps; ++i) {
    const int tap = i - (kMaxTaps - count);
    taps.history[i] = tap >= 0 ? widen(tail.row(tap)[channel]) : 0.0f;
  }
}

// The convolved and activated value; x then becomes the youngest of the history.
__device__ inline float conv_value(Taps& taps, float x) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i + 1 < kMaxTaps; ++i) sum = fmaf(taps.weight[i], taps.history[i], sum);
  sum = fmaf(taps.weight[kMaxTaps - 1], x, sum);
#pragma unroll
  for (int i = 0; i + 2 < kMaxTaps; ++i) taps.history[i] = taps.history[i + 1];
  taps.history[kMaxTaps - 2] = x;
  return silu(sum);
}

__device__ inline void store_history(const Rows<bf16>& tail, const Taps& taps, int count, int channel) {
#pragma unroll
  for (int i = 0; i + 1 < kMaxTaps; ++i) {
    const int tap = i - (kMaxTaps - count);
    if (tap >= 0) tail.row(tap)[channel] = narrow<bf16>(taps.history[i]);
  }
}

// One row of `Width` columns of one value head in shared memory. The state's columns are independent of each
// other, so that a head may be dealt over several blocks; Width * kKeyGroups threads share a block's columns.
template <int Width>
struct DeltaRow {
  float q[kDeltaWidth];
  float k[kDeltaWidth];
  float v[Width];
  float partial[kKeyGroups][Width];
  float read[Width];
};

// L2-normalises q (warp 0, also scaled) and k (warp 1) in place.
__device__ inline void normalise_keys(float* q, float* k) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (warp > 1) return;
  float* values = warp == 0 ? q : k;
  float x[4];
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    x[i] = values[lane * 4 + i];
    sum = fmaf(x[i], x[i], sum);
  }
  const float root = sqrtf(lanes_sum(sum) + 1e-6f);
#pragma unroll
  for (int i = 0; i < 4; ++i) values[lane * 4 + i] = x[i] / root * (warp == 0 ? kQueryScale : 1.0f);
}

// One step of the recurrence on the state held in registers: leaves the rounded output in row.read.
template <int Width>
__device__ inline void delta_step(float (&state)[kGroupKeys], DeltaRow<Width>& row, float decay, float beta) {
  const int column = static_cast<int>(threadIdx.x) % Width;
  const int group = static_cast<int>(threadIdx.x) / Width;
  const float* k = row.k + group * kGroupKeys;
  const float* q = row.q + group * kGroupKeys;
  float chain[4] = {};  // sums of every fourth key: four short chains
#pragma unroll
  for (int i = 0; i < kGroupKeys; ++i) {
    state[i] *= decay;
    chain[i % 4] = fmaf(state[i], k[i], chain[i % 4]);
  }
  row.partial[group][column] = (chain[0] + chain[1]) + (chain[2] + chain[3]);
  __syncthreads();  // partial reads of S^T k are written
  float seen = 0.0f;
  for (int i = 0; i < kKeyGroups; ++i) seen += row.partial[i][column];
  const float d = beta * (row.v[column] - seen);
#pragma unroll
  for (int i = 0; i < 4; ++i) chain[i] = 0.0f;
#pragma unroll
  for (int i = 0; i < kGroupKeys; ++i) {
    state[i] = fmaf(k[i], d, state[i]);
    chain[i % 4] = fmaf(state[i], q[i], chain[i % 4]);
  }
  __syncthreads();  // partial reads of S^T k are used
  row.partial[group][column] = (chain[0] + chain[1]) + (chain[2] + chain[3]);
  __syncthreads();  // partial reads of S^T q are written
  if (group == 0) {
    float read = 0.0f;
    for (int i = 0; i < kKeyGroups; ++i) read += row.partial[i][column];
    row.read[column] = rounded<bf16>(read);
  }
  __syncthreads();  // the row's output is in row.read
}

// The thread's part of a head's state: rows of its key group, one of the block's columns.
template <int Width>
__device__ inline float* state_at(float* memory, int head, int part) {
  const int column = static_cast<int>(threadIdx.x) % Width;
  const int group = static_cast<int>(threadIdx.x) / Width;
  return memory + (static_cast<int64_t>(head) * kDeltaWidth + group * kGroupKeys) * kDeltaWidth +
         part * Width + column;
}

__device__ inline void load_state(float (&state)[kGroupKeys], const float* from) {
#pragma unroll
  for (int i = 0; i < kGroupKeys; ++i) state[i] = from[i * kDeltaWidth];
}

__device__ inline void store_state(float* to, const float (&state)[kGroupKeys]) {
#pragma unroll
  for (int i = 0; i < kGroupKeys; ++i) to[i * kDeltaWidth] = state[i];
}

// Thread = one channel; rows in order.
__global__ void __launch_bounds__(64) delta_conv_kernel(const DeltaArgs args) {
  wait_for_previous();
  allow_next();
  const int channel = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (channel >= args.channels) return;
  Taps taps;
  load_weights(taps, args.conv, args.taps, args.channels, channel);
  load_history(taps, args.tail, args.taps, channel);
#pragma unroll 8
  for (int r = 0; r < args.rows; ++r) {
    args.out.row(r)[channel] = narrow<bf16>(conv_value(taps, widen(args.qkv.row(r)[channel])));
  }
  store_history(args.tail, taps, args.taps, channel);
}

__global__ void __launch_bounds__(256) delta_gate_kernel(const DeltaArgs args) {
  wait_for_previous();
  allow_next();
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (index >= args.rows * args.value_heads) return;
  const int row = index / args.value_heads, head = index % args.value_heads;
  args.decay.row(row)[head] = decay_of(widen(args.a.row(row)[head]), args.a_log[head], args.dt_bias[head]);
  args.beta.row(row)[head] = sigmoid(widen(args.b.row(row)[head]));
}

// Inputs of one row for one thread, loaded while the row before is computed.
struct NextRow {
  float q, k, v, decay, beta;
};

template <int Width>
__device__ inline NextRow next_row(const DeltaArgs& args, int r, int head, int part) {
  const int thread = static_cast<int>(threadIdx.x);
  const int key_head = head / (args.value_heads / args.key_heads);
  const int keys = args.key_heads * kDeltaWidth;
  const bf16* qkv = args.qkv.row(r);
  NextRow next{};
  if (thread < kDeltaWidth) {
    next.q = widen(qkv[key_head * kDeltaWidth + thread]);
    next.k = widen(qkv[keys + key_head * kDeltaWidth + thread]);
  }
  if (thread < Width) next.v = widen(qkv[2 * keys + head * kDeltaWidth + part * Width + thread]);
  next.decay = args.decay.row(r)[head];
  next.beta = args.beta.row(r)[head];
  return next;
}

// Block = some columns of one value head; rows in order, the state in registers.
template <int Width>
__global__ void __launch_bounds__(Width* kKeyGroups) delta_recur_kernel(const DeltaArgs args) {
  __shared__ DeltaRow<Width> row;
  wait_for_previous();
  allow_next();
  const int head = static_cast<int>(blockIdx.x), part = static_cast<int>(blockIdx.y);
  const int thread = static_cast<int>(threadIdx.x);
  float* memory = state_at<Width>(args.memory, head, part);
  float state[kGroupKeys];
  load_state(state, memory);
  NextRow next = next_row<Width>(args, 0, head, part);
  for (int r = 0; r < args.rows; ++r) {
    const float decay = next.decay, beta = next.beta;
    if (thread < kDeltaWidth) row.q[thread] = next.q, row.k[thread] = next.k;
    if (thread < Width) row.v[thread] = next.v;
    if (r + 1 < args.rows) next = next_row<Width>(args, r + 1, head, part);
    __syncthreads();  // the row is staged
    normalise_keys(row.q, row.k);
    __syncthreads();  // keys are normalised
    delta_step(state, row, decay, beta);
    if (thread < Width) {
      args.out.row(r)[head * kDeltaWidth + part * Width + thread] = narrow<bf16>(row.read[thread]);
    }
  }
  store_state(memory, state);
}

struct GatedNormArgs {
  Rows<bf16> out;
  Rows<const bf16> in, z;
  const float* weight = nullptr;
  float eps = 0.0f;
  int rows = 0;
  int heads = 0;
};

__global__ void __launch_bounds__(256) gated_norm_kernel(const GatedNormArgs args) {
  wait_for_previous();
  allow_next();
  const int index = static_cast<int>(blockIdx.x) * 8 + static_cast<int>(threadIdx.x) / 32;
  if (index >= args.rows * args.heads) return;
  const int row = index / args.heads, at = index % args.heads * kGatedWidth;
  const GatedLane lane = load_gated(args.in.row(row) + at, args.z.row(row) + at, args.weight);
  reinterpret_cast<uint2*>(args.out.row(row) + at)[threadIdx.x % 32] = gated_norm_lane(lane, args.eps);
}

// A block's channels: the key head's q and k, then its own columns of v; -1 past the last.
template <int Width>
__device__ inline int channel_of(const DeltaArgs& args, int i, int head, int part) {
  const int key_head = head / (args.value_heads / args.key_heads);
  const int keys = args.key_heads * kDeltaWidth;
  if (i < kDeltaWidth) return key_head * kDeltaWidth + i;
  if (i < 2 * kDeltaWidth) return keys + key_head * kDeltaWidth + i - kDeltaWidth;
  if (i < 2 * kDeltaWidth + Width) return 2 * keys + head * kDeltaWidth + part * Width + i - 2 * kDeltaWidth;
  return -1;
}

// Block = some columns of one value head of the one row: convolution, gates and recurrence. The blocks of one
// key head form a cluster: all of them read the key head's convolution tail, the first moves it on.
template <int Width>
__global__ void __launch_bounds__(Width* kKeyGroups) delta_fused_kernel(const DeltaArgs args) {
  constexpr int kThreads = Width * kKeyGroups;
  constexpr int kEach = (2 * kDeltaWidth + Width + kThreads - 1) / kThreads;  // channels of a thread
  constexpr int kParts = kDeltaWidth / Width;
  __shared__ DeltaRow<Width> row;
  __shared__ float gates[2];
  const int head = static_cast<int>(blockIdx.x) / kParts, part = static_cast<int>(blockIdx.x) % kParts;
  const int thread = static_cast<int>(threadIdx.x);
  float* memory = state_at<Width>(args.memory, head, part);
  float state[kGroupKeys];
  load_state(state, memory);  // state and tail were written a frame ago: they need no wait
  Taps taps[kEach];
  int channel[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    channel[i] = channel_of<Width>(args, i * kThreads + thread, head, part);
    if (channel[i] < 0) continue;
    load_weights(taps[i], args.conv, args.taps, args.channels, channel[i]);
    load_history(taps[i], args.tail, args.taps, channel[i]);
  }
  const float a_log = args.a_log[head], dt_bias = args.dt_bias[head];
  wait_for_previous();
  allow_next();

#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (channel[i] < 0) continue;
    const float value = rounded<bf16>(conv_value(taps[i], widen(args.qkv.row(0)[channel[i]])));
    const int at = i * kThreads + thread;
    float* line = at < kDeltaWidth       ? row.q + at
                  : at < 2 * kDeltaWidth ? row.k + at - kDeltaWidth
                                         : row.v + at - 2 * kDeltaWidth;
    *line = value;
  }
  if (thread == kThreads - 1) {
    gates[0] = decay_of(widen(args.a.row(0)[head]), a_log, dt_bias);
    gates[1] = sigmoid(widen(args.b.row(0)[head]));
  }
  cluster_arrive();
  __syncthreads();  // the row is staged
  normalise_keys(row.q, row.k);
  __syncthreads();  // keys are normalised
  delta_step(state, row, gates[0], gates[1]);
  if (thread < Width)
    args.out.row(0)[head * kDeltaWidth + part * Width + thread] = narrow<bf16>(row.read[thread]);
  cluster_wait();  // every block of the cluster has read the tail
  const bool first = head % (args.value_heads / args.key_heads) == 0 && part == 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (channel[i] >= 0 && (first || i * kThreads + thread >= 2 * kDeltaWidth)) {
      store_history(args.tail, taps[i], args.taps, channel[i]);
    }
  }
  store_state(memory, state);
}

template <int Width>
void delta_fused_of(LaunchQueue& queue, const DeltaArgs& args) {
  constexpr unsigned kParts = kDeltaWidth / Width;
  launch(queue, delta_fused_kernel<Width>,
         {.grid = dim3(static_cast<unsigned>(args.value_heads) * kParts),
          .block = Width * kKeyGroups,
          .cluster = static_cast<unsigned>(args.value_heads / args.key_heads) * kParts},
         args);
}

unsigned blocks_of(int64_t count, int each) { return static_cast<unsigned>((count + each - 1) / each); }

}  // namespace

void delta_conv(LaunchQueue& queue, const DeltaArgs& args) {
  INVARIANT(args.taps >= 1 && args.taps <= kMaxTaps, args.taps, " taps");
  launch(queue, delta_conv_kernel, {.grid = dim3(blocks_of(args.channels, 64)), .block = 64}, args);
}

void delta_gate(LaunchQueue& queue, const DeltaArgs& args) {
  const int64_t count = static_cast<int64_t>(args.rows) * args.value_heads;
  launch(queue, delta_gate_kernel, {.grid = dim3(blocks_of(count, 256))}, args);
}

void delta_recur(LaunchQueue& queue, const DeltaArgs& args) {
  constexpr int kWidth = 32;
  launch(queue, delta_recur_kernel<kWidth>,
         {.grid = dim3(static_cast<unsigned>(args.value_heads), kDeltaWidth / kWidth),
          .block = kWidth * kKeyGroups},
         args);
}

void delta_fused(LaunchQueue& queue, const DeltaArgs& args) {
  INVARIANT(args.taps >= 1 && args.taps <= kMaxTaps && args.rows == 1, args.taps, " taps, ", args.rows,
            " rows");
  const int ratio = args.value_heads / args.key_heads;
  INVARIANT(ratio <= kMaxCluster, ratio, " value heads of a key head");
  if (4 * ratio <= kMaxCluster) return delta_fused_of<kDeltaWidth / 4>(queue, args);
  if (2 * ratio <= kMaxCluster) return delta_fused_of<kDeltaWidth / 2>(queue, args);
  delta_fused_of<kDeltaWidth>(queue, args);
}

void gated_norm(LaunchQueue& queue, const View& out, const View& in, const View& z, const View& weight,
                float eps) {
  INVARIANT(weight.elements() == kGatedWidth, "gated norm of ", weight.elements());
  const GatedNormArgs args{.out = rows_of<bf16>(out),
                           .in = rows_of<const bf16>(in),
                           .z = rows_of<const bf16>(z),
                           .weight = rows_of<const float>(weight).data,
                           .eps = eps,
                           .rows = static_cast<int>(out.rows()),
                           .heads = static_cast<int>(out.cols() / kGatedWidth)};
  launch(queue, gated_norm_kernel, {.grid = dim3(blocks_of(static_cast<int64_t>(args.rows) * args.heads, 8))},
         args);
}

}  // namespace drama3
