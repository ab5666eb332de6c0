// Widening of stored scalars.
#include "lib/tensor/stored_value.h"

#include <cstring>

#include "lib/base/scalars.h"

namespace drama3 {

float stored_value(const View& view, int64_t row, int64_t col) {
  const std::byte* at = static_cast<const std::byte*>(view.data) +
                        static_cast<size_t>(row * view.row_stride + col) * dtype_size(view.type);
  switch (view.type) {
    case DType::kF32: {
      float value;
      std::memcpy(&value, at, sizeof value);
      return value;
    }
    case DType::kBF16:
    case DType::kF16: {
      uint16_t bits;
      std::memcpy(&bits, at, sizeof bits);
      return view.type == DType::kBF16 ? bf16_to_float(bits) : f16_to_float(bits);
    }
    case DType::kF8E4M3:
      return e4m3_to_float(static_cast<uint8_t>(*at));
    default:
      INVARIANT(false, "no float in ", dtype_name(view.type));
  }
  return 0.0f;
}

}  // namespace drama3
