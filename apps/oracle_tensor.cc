// Copies of tensors between files, backends and the host.
#include "apps/oracle_tensor.h"

namespace drama3 {
namespace {

template <typename Tensor>
Tensor transpose(const Tensor& tensor) {
  const int64_t rows = tensor.rows(), cols = tensor.cols();
  Tensor out{Shape{cols, rows}, tensor.values};
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      out.values[static_cast<size_t>(c * rows + r)] = tensor.values[static_cast<size_t>(r * cols + c)];
    }
  }
  return out;
}

template <typename Tensor>
void append(Tensor& tensor, const Tensor& more) {
  INVARIANT(tensor.values.empty() || tensor.cols() == more.cols(), tensor.shape.text(), " and ",
            more.shape.text());
  const int64_t rows = (tensor.values.empty() ? 0 : tensor.rows()) + more.rows();
  tensor.shape = Shape{rows, more.cols()};
  tensor.values.insert(tensor.values.end(), more.values.begin(), more.values.end());
}

}  // namespace

View view_of(const FloatTensor& tensor) {
  return View(const_cast<float*>(tensor.values.data()), DType::kF32, Shape{tensor.rows(), tensor.cols()});
}

View view_of(const IntTensor& tensor) {
  return View(const_cast<int32_t*>(tensor.values.data()), DType::kI32, Shape{tensor.rows(), tensor.cols()});
}

FloatTensor transposed(const FloatTensor& tensor) { return transpose(tensor); }
IntTensor transposed(const IntTensor& tensor) { return transpose(tensor); }

FloatTensor rows_of(const FloatTensor& tensor, int64_t begin, int64_t count) {
  INVARIANT(begin >= 0 && count >= 0 && begin + count <= tensor.rows(), "rows ", begin, "+", count, " of ",
            tensor.shape.text());
  return {Shape{count, tensor.cols()}, std::vector<float>(tensor.row(begin), tensor.row(begin + count))};
}

void append_rows(FloatTensor& tensor, const FloatTensor& more) { append(tensor, more); }
void append_rows(IntTensor& tensor, const IntTensor& more) { append(tensor, more); }

Buffer uploaded(Ops& ops, const FloatTensor& tensor, DType type) {
  Buffer buffer = ops.allocate(type, Shape{tensor.rows(), tensor.cols()});
  ops.upload(buffer.view, view_of(tensor));
  return buffer;
}

Buffer uploaded(Ops& ops, const IntTensor& tensor) {
  Buffer buffer = ops.allocate(DType::kI32, Shape{tensor.rows(), tensor.cols()});
  ops.upload(buffer.view, view_of(tensor));
  return buffer;
}

FloatTensor downloaded_floats(Ops& ops, const View& view) {
  FloatTensor tensor{Shape{view.rows(), view.cols()},
                     std::vector<float>(static_cast<size_t>(view.elements()))};
  ops.download(view_of(tensor), view);
  return tensor;
}

IntTensor downloaded_ints(Ops& ops, const View& view) {
  IntTensor tensor{Shape{view.rows(), view.cols()},
                   std::vector<int32_t>(static_cast<size_t>(view.elements()))};
  ops.download(view_of(tensor), view);
  return tensor;
}

}  // namespace drama3
