// Unsigned arithmetic that reports overflow instead of wrapping, for sizes read from files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace drama3 {

// a + b, or nothing when the sum does not fit 64 bits.
inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// a * b, or nothing when the product does not fit 64 bits.
inline std::optional<uint64_t> checked_multiply(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The product of all factors (1 for none), or nothing when it does not fit 64 bits.
inline std::optional<uint64_t> checked_product(std::span<const uint64_t> factors) {
  uint64_t product = 1;
  for (uint64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return product;
}

}  // namespace drama3
