// Tensors on the host as the oracle compares them: a shape and dense values, from and to files and backends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/ops/ops.h"

namespace drama3 {

// Dense values of one shape; rows are the last axis.
struct FloatTensor {
  Shape shape;
  std::vector<float> values;

  int64_t cols() const { return shape.rank() == 0 ? 1 : shape[shape.rank() - 1]; }
  int64_t rows() const { return cols() == 0 ? 0 : shape.elements() / cols(); }
  const float* row(int64_t r) const { return values.data() + r * cols(); }
};

struct IntTensor {
  Shape shape;
  std::vector<int32_t> values;

  int64_t cols() const { return shape.rank() == 0 ? 1 : shape[shape.rank() - 1]; }
  int64_t rows() const { return cols() == 0 ? 0 : shape.elements() / cols(); }
};

// A host view over the tensor's values as [rows, cols].
View view_of(const FloatTensor& tensor);
View view_of(const IntTensor& tensor);

// [cols, rows] of a tensor taken as [rows, cols].
FloatTensor transposed(const FloatTensor& tensor);
IntTensor transposed(const IntTensor& tensor);

// Rows [begin, begin + count) as [count, cols].
FloatTensor rows_of(const FloatTensor& tensor, int64_t begin, int64_t count);
// Appends the rows of `more`, of the same width; an empty tensor takes its width from them.
void append_rows(FloatTensor& tensor, const FloatTensor& more);
void append_rows(IntTensor& tensor, const IntTensor& more);

// The tensor in the backend's memory as `type`, as [rows, cols].
Buffer uploaded(Ops& ops, const FloatTensor& tensor, DType type);
Buffer uploaded(Ops& ops, const IntTensor& tensor);
// The view's values on the host, widened to F32, as [rows, cols].
FloatTensor downloaded_floats(Ops& ops, const View& view);
IntTensor downloaded_ints(Ops& ops, const View& view);

}  // namespace drama3
