// Gated delta rule: causal convolution, gates, recurrence with F32 state, gated norm; and all of it for one
// row.
#include "kernels/cuda/common/rows.cuh"
#include "kernels/cuda/delta.cuh"
#include "lib/base/check.h"

namespace drama3 {
namespace {

constexpr int kKeyGroups = 4;                            // threads that share a state column
constexpr int kGroupKeys = kDeltaWidth / kKeyGroups;     // state rows of a thread
constexpr int kDeltaThreads = kDeltaWidth * kKeyGroups;  // one thread per column and key group
constexpr float kQueryScale = 0.08838834764831845f;      // 128^-0.5

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

// One row of one value head in shared memory.
struct DeltaRow {
  float q[kDeltaWidth];
  float k[kDeltaWidth];
  float v[kDeltaWidth];
  float partial[kKeyGroups][kDeltaWidth];
  float read[kDeltaWidth];
};

// L2-normalises q (warp 0, also scaled) and k (warp 1) in place.
__device__ inline void normalise_keys(DeltaRow& row) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (warp > 1) return;
  float* values = warp == 0 ? row.q : row.k;
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
__device__ inline void delta_step(float (&state)[kGroupKeys], DeltaRow& row, float decay, float beta) {
  const int column = static_cast<int>(threadIdx.x) % kDeltaWidth;
  const int group = static_cast<int>(threadIdx.x) / kDeltaWidth;
  const float* k = row.k + group * kGroupKeys;
  const float* q = row.q + group * kGroupKeys;
  float seen = 0.0f;
#pragma unroll
  for (int i = 0; i < kGroupKeys; ++i) {
    state[i] *= decay;
    seen = fmaf(state[i], k[i], seen);
  }
  row.partial[group][column] = seen;
  __syncthreads();  // partial reads of S^T k are written
  seen = 0.0f;
  for (int i = 0; i < kKeyGroups; ++i) seen += row.partial[i][column];
  const float d = beta * (row.v[column] - seen);
  float read = 0.0f;
#pragma unroll
  for (int i = 0; i < kGroupKeys; ++i) {
    state[i] = fmaf(k[i], d, state[i]);
    read = fmaf(state[i], q[i], read);
  }
  __syncthreads();  // partial reads of S^T k are used
  row.partial[group][column] = read;
  __syncthreads();  // partial reads of S^T q are written
  if (group == 0) {
    read = 0.0f;
    for (int i = 0; i < kKeyGroups; ++i) read += row.partial[i][column];
    row.read[column] = rounded<bf16>(read);
  }
  __syncthreads();  // the row's output is in row.read
}

// y = x * rsqrt(mean(x^2) + eps) * weight * silu(z) by one warp, `width` a multiple of 32.
template <typename In>
__device__ inline void gated_norm_row(bf16* out, const In* in, const bf16* z, const float* weight, float eps,
                                      int width) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int each = width / 32;
  float sum = 0.0f;
  for (int i = 0; i < each; ++i) {
    const float x = widen(in[lane * each + i]);
    sum = fmaf(x, x, sum);
  }
  const float scale = rsqrtf(lanes_sum(sum) / static_cast<float>(width) + eps);
  for (int i = 0; i < each; ++i) {
    const int d = lane * each + i;
    out[d] = narrow<bf16>(widen(in[d]) * scale * weight[d] * silu(widen(z[d])));
  }
}

__device__ inline void load_state(float (&state)[kGroupKeys], const float* memory, int head) {
  const int column = static_cast<int>(threadIdx.x) % kDeltaWidth;
  const int group = static_cast<int>(threadIdx.x) / kDeltaWidth;
  const float* from = memory + (static_cast<int64_t>(head) * kDeltaWidth + group * kGroupKeys) * kDeltaWidth;
#pragma unroll
  for (int i = 0; i < kGroupKeys; ++i) state[i] = from[i * kDeltaWidth + column];
}

__device__ inline void store_state(float* memory, const float (&state)[kGroupKeys], int head) {
  const int column = static_cast<int>(threadIdx.x) % kDeltaWidth;
  const int group = static_cast<int>(threadIdx.x) / kDeltaWidth;
  float* to = memory + (static_cast<int64_t>(head) * kDeltaWidth + group * kGroupKeys) * kDeltaWidth;
#pragma unroll
  for (int i = 0; i < kGroupKeys; ++i) to[i * kDeltaWidth + column] = state[i];
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

// Block = one value head; rows in order, the state in registers.
__global__ void __launch_bounds__(kDeltaThreads) delta_recur_kernel(const DeltaArgs args) {
  __shared__ DeltaRow row;
  wait_for_previous();
  allow_next();
  const int head = static_cast<int>(blockIdx.x);
  const int key_head = head / (args.value_heads / args.key_heads);
  const int keys = args.key_heads * kDeltaWidth;
  const int thread = static_cast<int>(threadIdx.x);
  const int column = thread % kDeltaWidth;
  float state[kGroupKeys];
  load_state(state, args.memory, head);
  for (int r = 0; r < args.rows; ++r) {
    const bf16* qkv = args.qkv.row(r);
    if (thread < kDeltaWidth) row.q[column] = widen(qkv[key_head * kDeltaWidth + column]);
    if (thread / kDeltaWidth == 1) row.k[column] = widen(qkv[keys + key_head * kDeltaWidth + column]);
    if (thread / kDeltaWidth == 2) row.v[column] = widen(qkv[2 * keys + head * kDeltaWidth + column]);
    __syncthreads();  // the row is staged
    normalise_keys(row);
    __syncthreads();  // keys are normalised
    delta_step(state, row, args.decay.row(r)[head], args.beta.row(r)[head]);
    if (thread < kDeltaWidth) args.out.row(r)[head * kDeltaWidth + column] = narrow<bf16>(row.read[column]);
  }
  store_state(args.memory, state, head);
}

__global__ void __launch_bounds__(256) gated_norm_kernel(const GatedNormArgs args) {
  wait_for_previous();
  allow_next();
  const int index = static_cast<int>(blockIdx.x) * 8 + static_cast<int>(threadIdx.x) / 32;
  if (index >= args.rows * args.heads) return;
  const int row = index / args.heads, at = index % args.heads * args.width;
  gated_norm_row(args.out.row(row) + at, args.in.row(row) + at, args.z.row(row) + at, args.weight, args.eps,
                 args.width);
}

// Block = one value head of the one row. The value heads of one key head form a cluster: all of them read the
// key head's convolution tail, the first moves it on.
__global__ void __launch_bounds__(kDeltaThreads) delta_fused_kernel(const DeltaArgs args) {
  __shared__ DeltaRow row;
  __shared__ float gates[2];
  const int head = static_cast<int>(blockIdx.x);
  const int ratio = args.value_heads / args.key_heads;
  const int key_head = head / ratio;
  const int keys = args.key_heads * kDeltaWidth;
  const int thread = static_cast<int>(threadIdx.x);
  const int part = thread / kDeltaWidth, column = thread % kDeltaWidth;
  float state[kGroupKeys];
  load_state(state, args.memory, head);  // written a frame ago: needs no wait
  int channel = key_head * kDeltaWidth + column;
  if (part == 1) channel += keys;
  if (part == 2) channel = 2 * keys + head * kDeltaWidth + column;
  Taps taps;
  if (part < 3) load_weights(taps, args.conv, args.taps, args.channels, channel);
  const float a_log = args.a_log[head], dt_bias = args.dt_bias[head];
  wait_for_previous();
  allow_next();

  if (part < 3) {
    load_history(taps, args.tail, args.taps, channel);
    float* line = part == 0 ? row.q : part == 1 ? row.k : row.v;
    line[column] = rounded<bf16>(conv_value(taps, widen(args.qkv.row(0)[channel])));
  } else if (column == 0) {
    gates[0] = decay_of(widen(args.a.row(0)[head]), a_log, dt_bias);
    gates[1] = sigmoid(widen(args.b.row(0)[head]));
  }
  cluster_arrive();
  __syncthreads();  // the row is staged
  normalise_keys(row);
  __syncthreads();  // keys are normalised
  delta_step(state, row, gates[0], gates[1]);
  store_state(args.memory, state, head);
  if (thread < 32) {
    const int at = head * kDeltaWidth;
    gated_norm_row(args.out.row(0) + at, row.read, args.z.row(0) + at, args.norm, args.eps, kDeltaWidth);
  }
  cluster_wait();  // every block of the cluster has read the tail
  if (part == 2 || (part < 2 && head % ratio == 0)) store_history(args.tail, taps, args.taps, channel);
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
  launch(queue, delta_recur_kernel,
         {.grid = dim3(static_cast<unsigned>(args.value_heads)), .block = kDeltaThreads}, args);
}

void delta_fused(LaunchQueue& queue, const DeltaArgs& args) {
  INVARIANT(args.taps >= 1 && args.taps <= kMaxTaps && args.rows == 1, args.taps, " taps, ", args.rows,
            " rows");
  launch(queue, delta_fused_kernel,
         {.grid = dim3(static_cast<unsigned>(args.value_heads)),
          .block = kDeltaThreads,
          .cluster = static_cast<unsigned>(args.value_heads / args.key_heads)},
         args);
}

void gated_norm(LaunchQueue& queue, const GatedNormArgs& args) {
  INVARIANT(args.width % 32 == 0, "gated norm of ", args.width);
  launch(queue, gated_norm_kernel, {.grid = dim3(blocks_of(static_cast<int64_t>(args.rows) * args.heads, 8))},
         args);
}

}  // namespace drama3
