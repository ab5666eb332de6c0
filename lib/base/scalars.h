// Exact conversions between float and the stored scalar types: bfloat16, float16, float8 e4m3fn.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace drama3 {

// bfloat16 bits -> float, exact.
inline float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// float -> bfloat16 bits, round to nearest even; NaN stays NaN.
inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// The float nearest to value among the bfloat16 numbers (ties to even).
inline float round_to_bf16(float value) { return bf16_to_float(float_to_bf16(value)); }

// float16 bits -> float, exact.
inline float f16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide =
      exponent == 31 ? 0x7f800000u | (mantissa << 13) : ((exponent + 112) << 23) | (mantissa << 13);
  return std::bit_cast<float>(sign | wide);
}

// float -> float16 bits, round to nearest even, overflow to infinity; NaN stays NaN.
inline uint16_t float_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal: a multiple of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyintf(scaled)));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

// float8 e4m3fn bits -> float, exact; 0x7f and 0xff are NaN.
inline float e4m3_to_float(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  const uint32_t exponent = (bits >> 3) & 0xfu;
  const uint32_t mantissa = bits & 7u;
  if (exponent == 15 && mantissa == 7) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-9f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  return std::bit_cast<float>(sign | ((exponent + 120) << 23) | (mantissa << 20));
}

// float -> float8 e4m3fn bits, round to nearest even, saturating at 448; NaN gives 0x7f.
inline uint8_t float_to_e4m3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint8_t sign = static_cast<uint8_t>((bits >> 24) & 0x80u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7f;
  if (magnitude >= 0x43e00000u) return static_cast<uint8_t>(sign | 0x7e);  // 448 and above
  if (magnitude < 0x3c800000u) {                                           // below 2^-6: a multiple of 2^-9
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p9f;
    return static_cast<uint8_t>(sign | static_cast<uint8_t>(std::nearbyintf(scaled)));
  }
  const uint32_t rounded = magnitude + 0x7ffffu + ((magnitude >> 20) & 1u);
  return static_cast<uint8_t>(sign | ((rounded - 0x3c000000u) >> 20));
}

}  // namespace drama3
