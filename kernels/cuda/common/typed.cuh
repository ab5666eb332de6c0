// From a view's element type to C++ types.
#pragma once

#include "kernels/cuda/common/rows.cuh"
#include "lib/tensor/view.h"

namespace drama3 {

template <typename T>
constexpr DType dtype_of() {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, float>) return DType::kF32;
  if constexpr (std::is_same_v<Plain, bf16>) return DType::kBF16;
  if constexpr (std::is_same_v<Plain, f16>) return DType::kF16;
  if constexpr (std::is_same_v<Plain, int32_t>) return DType::kI32;
  return DType::kU8;
}

// The view as typed rows; its type and place are invariants.
template <typename T>
Rows<T> rows_of(const View& view) {
  INVARIANT(view.place == Place::kDevice && view.type == dtype_of<T>(), "rows of ", dtype_name(view.type),
            " where ", dtype_name(dtype_of<T>()), " on the device is expected");
  return {static_cast<T*>(view.data), view.row_stride};
}

// Calls run with a value of the C++ type of a float type.
template <typename Run>
void with_type(DType type, Run run) {
  switch (type) {
    case DType::kF32:
      return run(0.0f);
    case DType::kBF16:
      return run(bf16{});
    case DType::kF16:
      return run(f16{});
    default:
      INVARIANT(false, "no kernel for ", dtype_name(type));
  }
}

}  // namespace drama3
