// Routed FP8 experts: gate, up and SwiGLU, then down and the weighted sum, for one row and for many.
#include "kernels/cuda/route.cuh"
#include "lib/base/check.h"

namespace drama3 {
namespace {

constexpr int kColumns = 8;  // rows that one tensor-core tile takes
constexpr int kMaxGroups = kMaxHidden / kGroup;
constexpr int kGateUpThreads = 256;
constexpr int kDownThreads = 128;

// p += codes (16 x 128 block, this lane's four words) times 128 columns of `x` (this lane's column, F16).
__device__ inline void block_product(float (&p)[4], const uint4 (&codes)[4], const f16* x, bool column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint4 low = make_uint4(0, 0, 0, 0), high = low;
    if (column) {
      const uint4* at = reinterpret_cast<const uint4*>(x + half * 64 + lane % 4 * 16);
      low = at[0];
      high = at[1];
    }
    const uint32_t b[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    const uint4& upper = codes[half * 2];
    const uint4& lower = codes[half * 2 + 1];
    const uint32_t top[4] = {upper.x, upper.y, upper.z, upper.w};
    const uint32_t bottom[4] = {lower.x, lower.y, lower.z, lower.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint32_t a[4] = {e4m3x2_to_f16x2(static_cast<uint16_t>(top[j])),
                             e4m3x2_to_f16x2(static_cast<uint16_t>(bottom[j])),
                             e4m3x2_to_f16x2(static_cast<uint16_t>(top[j] >> 16)),
                             e4m3x2_to_f16x2(static_cast<uint16_t>(bottom[j] >> 16))};
      mma16816(p, a, b[2 * j], b[2 * j + 1], f16{});
    }
  }
}

__device__ inline void load_block(uint4 (&codes)[4], const uint4* block) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < 4; ++i) codes[i] = load_weight(block + i * 32 + lane);
}

// Quantises eight values of a group that `Lanes` neighbouring lanes share, into F16 codes; returns the scale.
template <int Lanes, int Count>
__device__ inline float quantize_group(f16* out, const float (&x)[Count]) {
  float top = 1e-10f;
#pragma unroll
  for (int i = 0; i < Count; ++i) top = fmaxf(top, fabsf(x[i]));
  const float scale = lanes_max<Lanes>(top) / 448.0f;
  uint32_t pairs[Count / 2];
#pragma unroll
  for (int i = 0; i < Count / 2; ++i) {
    const uint32_t low = e4m3_code(x[2 * i] / scale), high = e4m3_code(x[2 * i + 1] / scale);
    pairs[i] = e4m3x2_to_f16x2(static_cast<uint16_t>(low | (high << 8)));
  }
#pragma unroll
  for (int i = 0; i < Count / 8; ++i) {
    reinterpret_cast<uint4*>(out)[i] =
        make_uint4(pairs[4 * i], pairs[4 * i + 1], pairs[4 * i + 2], pairs[4 * i + 3]);
  }
  return scale;
}

// Eight e4m3 codes as F16.
__device__ inline uint4 widen_codes(const uint8_t* codes) {
  const uint2 word = *reinterpret_cast<const uint2*>(codes);
  return make_uint4(
      e4m3x2_to_f16x2(static_cast<uint16_t>(word.x)), e4m3x2_to_f16x2(static_cast<uint16_t>(word.x >> 16)),
      e4m3x2_to_f16x2(static_cast<uint16_t>(word.y)), e4m3x2_to_f16x2(static_cast<uint16_t>(word.y >> 16)));
}

// Columns of one pass: x as F16 codes [columns, n + 8], scales, and sums by group.
struct GateUpShared {
  float scale[kColumns][kMaxGroups];
  float sum[kMaxGroups][2][kTile][kColumns];
  int pair[kColumns];
};

// The one row, quantised by the whole block.
__device__ void stage_row(GateUpShared& shared, f16* xs, const bf16* in, int hidden) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int first = thread / 32 * 32; first * 8 < hidden; first += kGateUpThreads) {
    const int i = 8 * (first + thread % 32);
    float x[8] = {};
    if (i < hidden) load8(x, in + i);
    __align__(16) f16 codes[8];
    const float scale = quantize_group<16>(codes, x);
    if (i < hidden) {
      *reinterpret_cast<uint4*>(xs + i) = *reinterpret_cast<const uint4*>(codes);
      if (i % kGroup == 0) shared.scale[0][i / kGroup] = scale;
    }
  }
}

// Rows of the next pairs of this block's expert.
__device__ void stage_pairs(GateUpShared& shared, f16* xs, const ExpertArgs& args, int first, int columns) {
  const int thread = static_cast<int>(threadIdx.x);
  const int hidden = args.experts.hidden;
  const int stride = hidden + 8;
  if (thread < kColumns) shared.pair[thread] = thread < columns ? args.list.pairs[first + thread] : 0;
  __syncthreads();  // pairs are read
  for (int i = thread; i < kColumns * hidden / 8; i += kGateUpThreads) {
    const int column = i / (hidden / 8), at = i % (hidden / 8) * 8;
    uint4 x = make_uint4(0, 0, 0, 0);
    if (column < columns) x = widen_codes(args.codes.row(shared.pair[column] / args.route.top_k) + at);
    *reinterpret_cast<uint4*>(xs + column * stride + at) = x;
  }
  for (int i = thread; i < kColumns * kMaxGroups; i += kGateUpThreads) {
    const int column = i / kMaxGroups, group = i % kMaxGroups;
    if (column < columns && group < hidden / kGroup) {
      shared.scale[column][group] = args.scales.row(shared.pair[column] / args.route.top_k)[group];
    }
  }
}

// Block = 16 gate and 16 up rows of one expert: of a slot of the one row, or of an expert's list of pairs.
template <bool OneRow>
__global__ void __launch_bounds__(kGateUpThreads) gate_up_kernel(const ExpertArgs args) {
  __shared__ __align__(16) GateUpShared shared;
  __shared__ RoutedRow routed;
  f16* xs = reinterpret_cast<f16*>(dynamic_shared());
  const PackedExperts& experts = args.experts;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int tile = static_cast<int>(blockIdx.x);
  const int groups = experts.hidden / kGroup;
  wait_for_previous();
  allow_next();

  int expert = static_cast<int>(blockIdx.y), first = 0, end = 1;
  if (OneRow) {
    route_row(routed, args.route, 0);
    expert = routed.expert[blockIdx.y];
    if (tile == 0 && blockIdx.y == 0 && thread < args.route.top_k) {
      args.route.indices[thread] = routed.expert[thread];
      args.route.weights[thread] = slot_weight(routed, args.route, thread);
    }
  } else {
    first = args.list.offsets[expert];
    end = args.list.offsets[expert + 1];
    if (first == end) return;
  }
  const uint4* blocks = experts.gate_up + (static_cast<int64_t>(expert) * (experts.ffn / kTile) + tile) *
                                              groups * 2 * kBlockWords;
  uint4 gate[2][4], up[2][4];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int group = warp * 2 + i;
    if (group < groups) {
      load_block(gate[i], blocks + group * 2 * kBlockWords);
      load_block(up[i], blocks + (group * 2 + 1) * kBlockWords);
    }
  }
  const int64_t scale_row =
      (static_cast<int64_t>(expert) * (experts.ffn / kGroup) + tile * kTile / kGroup) * groups;

  for (; first < end; first += kColumns) {
    const int columns = OneRow ? 1 : min(kColumns, end - first);
    if (OneRow) {
      stage_row(shared, xs, args.in, experts.hidden);
    } else {
      stage_pairs(shared, xs, args, first, columns);
    }
    __syncthreads();  // columns are staged
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int group = warp * 2 + i;
      if (group >= groups) break;
      const bool column = OneRow ? lane < 4 : true;
      const f16* x = xs + (OneRow ? 0 : lane / 4 * (experts.hidden + 8)) + group * kGroup;
      float p[2][4] = {};
      block_product(p[0], gate[i], x, column);
      block_product(p[1], up[i], x, column);
      const float scales[2] = {args.experts.gate_scale[scale_row + group],
                               args.experts.up_scale[scale_row + group]};
#pragma unroll
      for (int which = 0; which < 2; ++which) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int c = lane % 4 * 2 + j % 2;
          if (c < columns) {
            shared.sum[group][which][lane / 4 + j / 2 * 8][c] =
                p[which][j] * shared.scale[c][group] * scales[which];
          }
        }
      }
    }
    __syncthreads();  // sums of all groups are written
    const int row = thread % kTile, c = thread / kTile;
    if (c < columns) {
      float g = 0.0f, u = 0.0f;
      for (int group = 0; group < groups; ++group) {
        g += shared.sum[group][0][row][c];
        u += shared.sum[group][1][row][c];
      }
      const int pair = OneRow ? static_cast<int>(blockIdx.y) : shared.pair[c];
      args.activation[static_cast<int64_t>(pair) * experts.ffn + tile * kTile + row] = silu(g) * u;
    }
    __syncthreads();  // sums and pairs are used
  }
}

// Block = 16 outputs of one expert; a warp takes one group of 128 columns; pairs eight at a time.
__global__ void __launch_bounds__(kDownThreads) down_rows_kernel(const ExpertArgs args) {
  constexpr int kStride = kMaxFfn + 8;
  __shared__ __align__(16) f16 xs[kColumns * kStride];
  __shared__ float sum[kMaxFfn / kGroup][kTile][kColumns];
  __shared__ int pair[kColumns];
  const PackedExperts& experts = args.experts;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int tile = static_cast<int>(blockIdx.x), expert = static_cast<int>(blockIdx.y);
  const int groups = experts.ffn / kGroup;
  wait_for_previous();
  allow_next();
  const int end = args.list.offsets[expert + 1];
  int first = args.list.offsets[expert];
  if (first == end) return;
  const uint4* blocks =
      experts.down + (static_cast<int64_t>(expert) * (experts.hidden / kTile) + tile) * groups * kBlockWords;
  uint4 codes[4];
  if (warp < groups) load_block(codes, blocks + warp * kBlockWords);
  const float* scales =
      experts.down_scale +
      (static_cast<int64_t>(expert) * (experts.hidden / kGroup) + tile * kTile / kGroup) * groups;
  for (; first < end; first += kColumns) {
    const int columns = min(kColumns, end - first);
    if (thread < kColumns) pair[thread] = thread < columns ? args.list.pairs[first + thread] : 0;
    __syncthreads();  // pairs are read
    for (int i = thread; i < kColumns * experts.ffn / 8; i += kDownThreads) {
      const int column = i / (experts.ffn / 8), at = i % (experts.ffn / 8) * 8;
      *reinterpret_cast<uint4*>(xs + column * kStride + at) =
          column < columns ? widen_codes(args.codes.row(pair[column]) + at) : make_uint4(0, 0, 0, 0);
    }
    __syncthreads();  // columns are staged
    if (warp < groups) {
      float p[4] = {};
      block_product(p, codes, xs + lane / 4 * kStride + warp * kGroup, true);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int c = lane % 4 * 2 + j % 2;
        if (c < columns) {
          sum[warp][lane / 4 + j / 2 * 8][c] = p[j] * args.scales.row(pair[c])[warp] * scales[warp];
        }
      }
    }
    __syncthreads();  // sums of all groups are written
    const int row = thread % kTile, c = thread / kTile;
    if (c < columns) {
      float total = 0.0f;
      for (int group = 0; group < groups; ++group) total += sum[group][row][c];
      const float weight = args.weights.row(pair[c] / args.route.top_k)[pair[c] % args.route.top_k];
      args.weighted[static_cast<int64_t>(pair[c]) * experts.hidden + tile * kTile + row] =
          narrow<bf16>(total * weight);
    }
    __syncthreads();  // sums and pairs are used
  }
}

struct DownShared {
  float routed[kMaxTopK][kTile];  // weighted outputs of the slots
  float shared[kMaxTopK][kTile];  // slices of the shared expert's output
};

// The slot's 16 weighted outputs; its activation is quantised by the warp itself.
__device__ void down_slot(DownShared& shared, f16* xs, const ExpertArgs& args, int slot, int tile) {
  const PackedExperts& experts = args.experts;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int groups = experts.ffn / kGroup;
  const int expert = args.route.indices[slot];
  const uint4* blocks =
      experts.down + (static_cast<int64_t>(expert) * (experts.hidden / kTile) + tile) * groups * kBlockWords;
  uint4 codes[kMaxFfn / kGroup][4];
#pragma unroll
  for (int group = 0; group < kMaxFfn / kGroup; ++group) {
    if (group < groups) load_block(codes[group], blocks + group * kBlockWords);
  }
  float x[16] = {};
  if (lane * 16 < experts.ffn) {
    const float* activation = args.activation + static_cast<int64_t>(slot) * experts.ffn + lane * 16;
#pragma unroll
    for (int i = 0; i < 16; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(activation + i);
      x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
    }
  }
  __align__(16) f16 quantized[16];
  const float scale = quantize_group<8>(quantized, x);
  if (lane * 16 < experts.ffn) {
    reinterpret_cast<uint4*>(xs + lane * 16)[0] = reinterpret_cast<const uint4*>(quantized)[0];
    reinterpret_cast<uint4*>(xs + lane * 16)[1] = reinterpret_cast<const uint4*>(quantized)[1];
  }
  __syncwarp();  // the slot's codes are staged
  const float* weight_scales =
      experts.down_scale +
      (static_cast<int64_t>(expert) * (experts.hidden / kGroup) + tile * kTile / kGroup) * groups;
  float top = 0.0f, bottom = 0.0f;
#pragma unroll
  for (int group = 0; group < kMaxFfn / kGroup; ++group) {
    if (group >= groups) break;
    float p[4] = {};
    block_product(p, codes[group], xs + group * kGroup, lane < 4);
    const float group_scale = __shfl_sync(kAllLanes, scale, group * 8);
    top += p[0] * group_scale * weight_scales[group];
    bottom += p[2] * group_scale * weight_scales[group];
  }
  if (lane % 4 == 0) {
    const float weight = args.route.weights[slot];
    shared.routed[slot][lane / 4] = rounded<bf16>(top * weight);
    shared.routed[slot][lane / 4 + 8] = rounded<bf16>(bottom * weight);
  }
}

// One slice of the shared expert's 16 outputs, weights already in registers.
__device__ void down_shared(DownShared& shared, const bf16* xs, const uint4 (&upper)[kSliceSteps],
                            const uint4 (&lower)[kSliceSteps], int slice, int steps) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float c[4] = {};
#pragma unroll
  for (int i = 0; i < kSliceSteps; ++i) {
    const int step = slice * kSliceSteps + i;
    if (step >= steps) break;
    uint4 x = make_uint4(0, 0, 0, 0);
    if (lane < 4) x = *reinterpret_cast<const uint4*>(xs + step * kStepK + lane * 8);
    const uint32_t front[4] = {upper[i].x, lower[i].x, upper[i].y, lower[i].y};
    const uint32_t back[4] = {upper[i].z, lower[i].z, upper[i].w, lower[i].w};
    mma16816(c, front, x.x, x.y, bf16{});
    mma16816(c, back, x.z, x.w, bf16{});
  }
  if (lane % 4 == 0) {
    shared.shared[slice][lane / 4] = c[0];
    shared.shared[slice][lane / 4 + 8] = c[2];
  }
}

// Block = 16 outputs of the one row: a warp a slot, then a warp a slice of the shared expert.
__global__ void __launch_bounds__((kMaxTopK + kMaxTopK) * 32 / 2) down_row_kernel(const ExpertArgs args) {
  __shared__ DownShared shared;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int tile = static_cast<int>(blockIdx.x);
  const int top_k = args.route.top_k;
  const int slices = (args.shared_steps + kSliceSteps - 1) / kSliceSteps;
  bf16* shared_row = reinterpret_cast<bf16*>(dynamic_shared());
  f16* slots = reinterpret_cast<f16*>(shared_row + args.shared_steps * kStepK);
  if (warp < top_k) {
    wait_for_previous();
    allow_next();
    down_slot(shared, slots + warp * args.experts.ffn, args, warp, tile);
  } else {
    const int slice = warp - top_k;
    const uint4* weight = args.shared_down + static_cast<int64_t>(tile) * args.shared_steps * 64 + lane;
    uint4 upper[kSliceSteps], lower[kSliceSteps];
#pragma unroll
    for (int i = 0; i < kSliceSteps; ++i) {
      const int step = slice * kSliceSteps + i;
      if (step < args.shared_steps) {
        upper[i] = load_weight(weight + step * 64);
        lower[i] = load_weight(weight + step * 64 + 32);
      }
    }
    wait_for_previous();
    allow_next();
    // The slice's own columns of the activation: no other warp reads them.
    for (int i = lane; i < kSliceK; i += 32) {
      const int column = slice * kSliceK + i;
      if (column >= args.shared_steps * kStepK) break;
      float a = 0.0f;
      if (column < args.shared_ffn) {
        a = silu(widen(args.shared_gate_row[column])) * widen(args.shared_up_row[column]);
      }
      shared_row[column] = narrow<bf16>(a);
    }
    __syncwarp();  // the slice's columns are staged
    down_shared(shared, shared_row, upper, lower, slice, args.shared_steps);
  }
  __syncthreads();  // all slots and slices are written
  if (thread >= kTile) return;
  const int n = tile * kTile + thread;
  float routed = 0.0f, always = 0.0f;
  for (int slot = 0; slot < top_k; ++slot) routed += shared.routed[slot][thread];
  for (int slice = 0; slice < slices; ++slice) always += shared.shared[slice][thread];
  const float gated = rounded<bf16>(sigmoid(widen(args.shared_gate[0])) * rounded<bf16>(always));
  const bf16 out = narrow<bf16>(rounded<bf16>(routed) + gated);
  args.out[n] = out;
  if (args.residual != nullptr) args.residual[n] = narrow<bf16>(widen(args.residual[n]) + widen(out));
}

__global__ void __launch_bounds__(256)
    combine_slots_kernel(const Rows<bf16> out, const bf16* weighted, int rows, int top_k, int hidden) {
  wait_for_previous();
  allow_next();
  const int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y);
  if (n >= hidden || row >= rows) return;
  float sum = 0.0f;
  for (int slot = 0; slot < top_k; ++slot) {
    sum += widen(weighted[(static_cast<int64_t>(row) * top_k + slot) * hidden + n]);
  }
  out.row(row)[n] = narrow<bf16>(sum);
}

void require_sizes(const ExpertArgs& args) {
  const PackedExperts& experts = args.experts;
  INVARIANT(experts.hidden % kGroup == 0 && experts.hidden <= kMaxHidden && experts.ffn % kGroup == 0 &&
                experts.ffn <= kMaxFfn && args.route.top_k <= kMaxTopK,
            "experts of ", experts.hidden, " x ", experts.ffn, ", top ", args.route.top_k);
}

}  // namespace

void experts_gate_up(LaunchQueue& queue, const ExpertArgs& args, bool one_row) {
  require_sizes(args);
  const int tiles = args.experts.ffn / kTile;
  const int columns = one_row ? 1 : kColumns;
  const Geometry geometry{
      .grid = dim3(static_cast<unsigned>(tiles),
                   static_cast<unsigned>(one_row ? args.route.top_k : args.experts.experts)),
      .block = kGateUpThreads,
      .shared = static_cast<size_t>(columns) * static_cast<size_t>(args.experts.hidden + 8) * sizeof(f16)};
  launch(queue, one_row ? gate_up_kernel<true> : gate_up_kernel<false>, geometry, args);
}

void experts_down_rows(LaunchQueue& queue, const ExpertArgs& args) {
  require_sizes(args);
  launch(queue, down_rows_kernel,
         {.grid = dim3(static_cast<unsigned>(args.experts.hidden / kTile),
                       static_cast<unsigned>(args.experts.experts)),
          .block = kDownThreads},
         args);
}

void experts_down_row(LaunchQueue& queue, const ExpertArgs& args) {
  require_sizes(args);
  const int slices = (args.shared_steps + kSliceSteps - 1) / kSliceSteps;
  INVARIANT(slices + args.route.top_k <= kMaxTopK, "shared expert of ", args.shared_ffn);
  launch(
      queue, down_row_kernel,
      {.grid = dim3(static_cast<unsigned>(args.experts.hidden / kTile)),
       .block = static_cast<unsigned>(args.route.top_k + slices) * 32,
       .shared = static_cast<size_t>(args.shared_steps) * kStepK * sizeof(bf16) +
                 static_cast<size_t>(args.route.top_k) * static_cast<size_t>(args.experts.ffn) * sizeof(f16)},
      args);
}

void combine_slots(LaunchQueue& queue, const Rows<bf16>& out, const bf16* weighted, int rows, int top_k,
                   int hidden) {
  launch(queue, combine_slots_kernel,
         {.grid = dim3(static_cast<unsigned>((hidden + 255) / 256), static_cast<unsigned>(rows))}, out,
         weighted, rows, top_k, hidden);
}

}  // namespace drama3
