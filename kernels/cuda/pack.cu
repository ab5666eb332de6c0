// Packing kernels; they run once per tensor at load.
#include "kernels/cuda/common/device.cuh"
#include "kernels/cuda/moe.cuh"
#include "kernels/cuda/pack.cuh"
#include "lib/base/check.h"

namespace drama3 {
namespace {

__device__ inline float stored_float(const void* data, DType type, int64_t i) {
  switch (type) {
    case DType::kF32:
      return static_cast<const float*>(data)[i];
    case DType::kBF16:
      return widen(static_cast<const bf16*>(data)[i]);
    case DType::kF16:
      return widen(static_cast<const f16*>(data)[i]);
    default: {
      const uint32_t pair = e4m3x2_to_f16x2(static_cast<const uint8_t*>(data)[i]);
      return __half2float(__ushort_as_half(static_cast<unsigned short>(pair & 0xffffu)));
    }
  }
}

// Thread = one stored value of a row of the target.
template <typename T>
__global__ void __launch_bounds__(256)
    pack_matrix_kernel(const PackTarget target, const PackSource source, int64_t count) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= count) return;
  const int taps = target.steps * kStepK / target.in_padded;
  const int channel = static_cast<int>(index % target.channels);
  const int tap = static_cast<int>(index / target.channels % taps);
  const int n = static_cast<int>(index / target.channels / taps);
  const int64_t at = source.base + n / source.period * source.high_step +
                     n % source.period * source.low_step + tap * source.tap_step +
                     channel * source.channel_step;
  float value = stored_float(source.data, source.type, at);
  if (source.scale != nullptr) {
    const int blocks = (target.channels + kGroup - 1) / kGroup;
    value *= stored_float(source.scale, source.scale_type,
                          static_cast<int64_t>(n / kGroup) * blocks + channel / kGroup);
  }
  const int row = target.first_row + n;
  const int kk = tap * target.in_padded + target.first_channel + channel;
  const int step = kk / kStepK, inner = kk % kStepK;
  const int lane = row % 8 * 4 + inner / 8;
  const int64_t word =
      (static_cast<int64_t>(row / kTile) * target.steps + step) * 64 + row % kTile / 8 * 32 + lane;
  reinterpret_cast<T*>(target.data)[word * 8 + inner % 8] = narrow<T>(value);
}

// Thread = sixteen codes.
__global__ void __launch_bounds__(256)
    pack_codes_kernel(uint4* out, const uint8_t* codes, int n, int k, int stride) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= static_cast<int64_t>(n) * k / 16) return;
  const int row = static_cast<int>(index / (k / 16));
  const int column = static_cast<int>(index % (k / 16)) * 16;
  const int64_t block = static_cast<int64_t>(row / kTile) * (k / kGroup) + column / kGroup;
  const int half = column % kGroup / 64, quarter = column % 64 / 16;
  const int word = (half * 2 + row % kTile / 8) * 32 + row % 8 * 4 + quarter;
  out[block * stride + word] =
      *reinterpret_cast<const uint4*>(codes + static_cast<int64_t>(row) * k + column);
}

__global__ void __launch_bounds__(256)
    pack_vector_kernel(float* out, const void* in, DType type, int64_t count, float add) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out[i] = add + stored_float(in, type, i);
}

Geometry geometry_of(int64_t count) { return {.grid = dim3(static_cast<unsigned>((count + 255) / 256))}; }

}  // namespace

void pack_matrix(cudaStream_t stream, const PackTarget& target, const PackSource& source) {
  LaunchQueue queue{.stream = stream};
  const int64_t count =
      static_cast<int64_t>(target.rows) * (target.steps * kStepK / target.in_padded) * target.channels;
  launch(queue, target.type == DType::kBF16 ? pack_matrix_kernel<bf16> : pack_matrix_kernel<f16>,
         geometry_of(count), target, source, count);
}

void pack_codes(cudaStream_t stream, uint4* out, const uint8_t* codes, int n, int k, int stride) {
  LaunchQueue queue{.stream = stream};
  INVARIANT(n % kTile == 0 && k % kGroup == 0, "FP8 matrix of ", n, " x ", k);
  launch(queue, pack_codes_kernel, geometry_of(static_cast<int64_t>(n) * k / 16), out, codes, n, k, stride);
}

void pack_vector(cudaStream_t stream, float* out, const void* in, DType type, int64_t count, float add) {
  LaunchQueue queue{.stream = stream};
  launch(queue, pack_vector_kernel, geometry_of(count), out, in, type, count, add);
}

}  // namespace drama3
