// A view of a dense row-major tensor: pointer, element type, shape, row stride and place; it owns nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"

namespace drama3 {

enum class Place : uint8_t { kHost, kDevice };

// Elements are contiguous inside a row (the last axis); rows (all other axes flattened) may be apart by
// row_stride elements, so that a column slice of a matrix is a view too. Host data may be unaligned: weights
// are read where the checkpoint maps them.
struct View {
  void* data = nullptr;
  DType type = DType::kF32;
  Shape shape;
  int64_t row_stride = 0;  // elements from one row to the next; cols() when dense
  Place place = Place::kHost;

  View() = default;
  View(void* data_, DType type_, const Shape& shape_, Place place_ = Place::kHost)
      : data(data_), type(type_), shape(shape_), place(place_) {
    row_stride = cols();
  }

  bool empty() const { return data == nullptr || shape.elements() == 0; }
  int64_t cols() const { return shape.rank() == 0 ? 1 : shape[shape.rank() - 1]; }
  int64_t rows() const {
    int64_t product = 1;
    for (int axis = 0; axis + 1 < shape.rank(); ++axis) product *= shape[axis];
    return product;
  }
  int64_t elements() const { return shape.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * dtype_size(type); }
  bool dense() const { return row_stride == cols(); }

  // Row r as a typed pointer.
  template <typename T>
  T* row(int64_t r) const {
    DEBUG_INVARIANT(sizeof(T) == dtype_size(type), "element of ", sizeof(T), " bytes for ", dtype_name(type));
    return static_cast<T*>(data) + r * row_stride;
  }
  // Rows [begin, begin + count) of a view of rank 2.
  View rows_from(int64_t begin, int64_t count) const {
    DEBUG_INVARIANT(begin >= 0 && count >= 0 && begin + count <= rows(), "rows ", begin, "+", count, " of ",
                    rows());
    View part = *this;
    part.shape = Shape{count, cols()};
    part.data = static_cast<std::byte*>(data) + static_cast<size_t>(begin * row_stride) * dtype_size(type);
    return part;
  }
  // Columns [begin, begin + count) of every row.
  View cols_from(int64_t begin, int64_t count) const {
    DEBUG_INVARIANT(begin >= 0 && count >= 0 && begin + count <= cols(), "cols ", begin, "+", count, " of ",
                    cols());
    View part = *this;
    part.shape = Shape{rows(), count};
    part.data = static_cast<std::byte*>(data) + static_cast<size_t>(begin) * dtype_size(type);
    return part;
  }
};

}  // namespace drama3
