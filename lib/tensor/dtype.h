// The element types that weights, activations and state are stored in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace drama3 {

enum class DType : uint8_t { kF64, kF32, kF16, kBF16, kF8E4M3, kI64, kI32, kI16, kI8, kU8, kBool };

// Bytes of one element.
constexpr size_t dtype_size(DType type) {
  switch (type) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
    case DType::kI16:
      return 2;
    default:
      return 1;
  }
}

// The safetensors spelling: "F32", "BF16", "F8_E4M3", ...
constexpr std::string_view dtype_name(DType type) {
  switch (type) {
    case DType::kF64:
      return "F64";
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kF8E4M3:
      return "F8_E4M3";
    case DType::kI64:
      return "I64";
    case DType::kI32:
      return "I32";
    case DType::kI16:
      return "I16";
    case DType::kI8:
      return "I8";
    case DType::kU8:
      return "U8";
    case DType::kBool:
      return "BOOL";
  }
  return "?";
}

}  // namespace drama3
