// Projections of one row: weights stream from memory through registers into tensor-core products.
#include <algorithm>

#include "kernels/cuda/common/rows.cuh"
#include "kernels/cuda/linear.cuh"
#include "lib/base/check.h"

namespace drama3 {
namespace {

constexpr int kMaxWarps = 20;  // blocks of up to 640 threads

// Writes value as element i of an array of a stored type.
__device__ inline void store_as(void* out, int type, int64_t i, float value) {
  if (type == static_cast<int>(DType::kF32)) {
    static_cast<float*>(out)[i] = value;
  } else if (type == static_cast<int>(DType::kBF16)) {
    static_cast<bf16*>(out)[i] = narrow<bf16>(value);
  } else {
    static_cast<f16*>(out)[i] = narrow<f16>(value);
  }
}

// Fills xs[0, padded) with the input row, zeros past k.
template <typename T>
__device__ void stage_row(T* xs, const GemvArgs& args, bool keep) {
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int padded = args.steps * kStepK;
  if (args.input == RowInput::kNorm) {
    int at = 0;
    for (int part = 0; part < args.part_count; ++part) {
      const NormPart& norm = args.parts[part];
      rms_norm_row(xs + at, static_cast<const T*>(norm.in), norm.weight, norm.dim, norm.eps,
                   keep ? static_cast<T*>(norm.copy) : nullptr);
      at += norm.dim;
    }
  } else if (args.input == RowInput::kSwiglu) {
    const T* gate = static_cast<const T*>(args.x);
    const T* up = static_cast<const T*>(args.up);
    for (int i = 8 * thread; i < args.k; i += 8 * threads) {
      float g[8], u[8];
      load8(g, gate + i);
      load8(u, up + i);
#pragma unroll
      for (int j = 0; j < 8; ++j) g[j] = silu(g[j]) * u[j];
      store8(xs + i, g);
      if (keep) store8(static_cast<T*>(args.swiglu_copy) + i, g);
    }
  } else if (args.k % 8 == 0) {
    const T* x = static_cast<const T*>(args.x);
    for (int i = 8 * thread; i < args.k; i += 8 * threads) {
      *reinterpret_cast<uint4*>(xs + i) = *reinterpret_cast<const uint4*>(x + i);
    }
  } else {
    for (int i = thread; i < args.k; i += threads) xs[i] = static_cast<const T*>(args.x)[i];
  }
  for (int i = args.k + thread; i < padded; i += threads) xs[i] = narrow<T>(0.0f);
}

// One step of 32 columns: two products; only column 0 of the right operand is the row.
template <typename T>
__device__ inline void step_product(float (&c)[4], const uint4& upper, const uint4& lower, const uint4& x) {
  const uint32_t first[4] = {upper.x, lower.x, upper.y, lower.y};
  mma16816(c, first, x.x, x.y, T{});
  const uint32_t second[4] = {upper.z, lower.z, upper.w, lower.w};
  mma16816(c, second, x.z, x.w, T{});
}

// Block = one tile of 16 outputs; a warp takes slices warp, warp + warps, ...
template <typename T>
__global__ void __launch_bounds__(kMaxWarps * 32) gemv_kernel(const GemvArgs args) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int block = static_cast<int>(blockIdx.x);
  int which = 0;
  while (which + 1 < args.segment_count && block >= args.segments[which + 1].first_tile) ++which;
  const GemvSegment& segment = args.segments[which];
  const int tile = block - segment.first_tile;
  const int slices = (args.steps + kSliceSteps - 1) / kSliceSteps;
  const uint4* weight = segment.weight + static_cast<int64_t>(tile) * args.steps * 64 + lane;

  // The first slice's weights are on their way before the wait: they depend on nothing.
  uint4 upper[kSliceSteps], lower[kSliceSteps];
#pragma unroll
  for (int i = 0; i < kSliceSteps; ++i) {
    const int step = warp * kSliceSteps + i;
    if (step < args.steps) {
      upper[i] = load_weight(weight + step * 64);
      lower[i] = load_weight(weight + step * 64 + 32);
    }
  }
  wait_for_previous();
  allow_next();

  T* xs = reinterpret_cast<T*>(dynamic_shared());
  float* partial = reinterpret_cast<float*>(xs + args.steps * kStepK);  // [slices, 16]
  stage_row(xs, args, block == 0);
  __syncthreads();  // the row is staged

  for (int slice = warp; slice < slices; slice += warps) {
    float c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < kSliceSteps; ++i) {
      const int step = slice * kSliceSteps + i;
      if (step < args.steps) {
        uint4 x = make_uint4(0, 0, 0, 0);
        if (lane < 4) x = *reinterpret_cast<const uint4*>(xs + step * kStepK + lane * 8);
        step_product<T>(c, upper[i], lower[i], x);
        const int next = step + warps * kSliceSteps;
        if (next < args.steps) {
          upper[i] = load_weight(weight + next * 64);
          lower[i] = load_weight(weight + next * 64 + 32);
        }
      }
    }
    if (lane % 4 == 0) {
      partial[slice * kTile + lane / 4] = c[0];
      partial[slice * kTile + lane / 4 + 8] = c[2];
    }
  }
  __syncthreads();  // partial sums are written

  const int n = tile * kTile + static_cast<int>(threadIdx.x);
  if (threadIdx.x >= kTile || n >= segment.n) return;
  float sum = 0.0f;
  for (int slice = 0; slice < slices; ++slice) sum += partial[slice * kTile + static_cast<int>(threadIdx.x)];
  if (segment.bias != nullptr) sum += segment.bias[n];
  store_as(segment.out, segment.type, n, sum);
  if (segment.residual != nullptr) {
    T* residual = static_cast<T*>(segment.residual) + n;
    *residual = narrow<T>(widen(*residual) + rounded<T>(sum));
  }
}

}  // namespace

void gemv(LaunchQueue& queue, DType input, const GemvArgs& args) {
  const GemvSegment& last = args.segments[args.segment_count - 1];
  const int tiles = last.first_tile + (last.n + kTile - 1) / kTile;
  const int slices = (args.steps + kSliceSteps - 1) / kSliceSteps;
  const int rounds = (slices + kMaxWarps - 1) / kMaxWarps;
  const int warps = std::max(kReduceThreads / 32, (slices + rounds - 1) / rounds);
  const Geometry geometry{.grid = dim3(static_cast<unsigned>(tiles)),
                          .block = static_cast<unsigned>(warps) * 32,
                          .shared = static_cast<size_t>(args.steps) * kStepK * 2 +
                                    static_cast<size_t>(slices) * kTile * sizeof(float)};
  if (input == DType::kBF16) {
    launch(queue, gemv_kernel<bf16>, geometry, args);
  } else {
    INVARIANT(input == DType::kF16, "rows of ", dtype_name(input));
    launch(queue, gemv_kernel<f16>, geometry, args);
  }
}

}  // namespace drama3
