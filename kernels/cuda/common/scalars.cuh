// The stored scalar types on the device: widening, rounding, and pairs of FP8 codes as F16.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <cstdint>

namespace drama3 {

using bf16 = __nv_bfloat16;
using f16 = __half;

__host__ __device__ inline float widen(float value) { return value; }
__host__ __device__ inline float widen(bf16 value) { return __bfloat162float(value); }
__host__ __device__ inline float widen(f16 value) { return __half2float(value); }

// The nearest value of type T, ties to even.
template <typename T>
__host__ __device__ inline T narrow(float value);
template <>
__host__ __device__ inline float narrow<float>(float value) {
  return value;
}
template <>
__host__ __device__ inline bf16 narrow<bf16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__host__ __device__ inline f16 narrow<f16>(float value) {
  return __float2half_rn(value);
}

// The float nearest to value among the numbers of type T.
template <typename T>
__host__ __device__ inline float rounded(float value) {
  return widen(narrow<T>(value));
}

// e4m3 code of a float: nearest, ties to even, saturating at 448.
__host__ __device__ inline uint8_t e4m3_code(float value) {
  return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
}

// Two e4m3 codes (low byte first) as two F16 numbers, exact.
__host__ __device__ inline uint32_t e4m3x2_to_f16x2(uint16_t codes) {
  const __half2_raw pair = __nv_cvt_fp8x2_to_halfraw2(codes, __NV_E4M3);
  return static_cast<uint32_t>(pair.x) | (static_cast<uint32_t>(pair.y) << 16);
}

// x * sigmoid(x).
__device__ inline float silu(float x) { return x / (1.0f + expf(-x)); }
__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

}  // namespace drama3
