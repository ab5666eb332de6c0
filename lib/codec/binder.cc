// Checks of rank and size, and the preparation of each kind of weight.
#include "lib/codec/binder.h"

#include "lib/base/error.h"
#include "lib/codec/fold.h"

namespace drama3::codec {
namespace {

const std::vector<DType> kFloats = {DType::kF32, DType::kF16, DType::kBF16};

void check_dimensions(const std::string& tensor, const Shape& shape, int rank) {
  bool fits = shape.rank() == rank;
  for (int axis = 0; fits && axis < rank; ++axis) fits = shape[axis] > 0;
  if (!fits) fail("codec tensor ", tensor, ": expected ", rank, " dimensions above 0, got ", shape.text());
}

View host_view(const std::vector<float>& values, const Shape& shape) {
  return {const_cast<float*>(values.data()), DType::kF32, shape};
}

}  // namespace

Shape Binder::shape(std::string_view tensor, int rank) const {
  const std::string name = prefix_ + std::string(tensor);
  const auto stored = source_->shape_of(name);
  if (!stored) fail("codec tensor ", name, ": expected ", rank, " dimensions, got no such tensor");
  check_dimensions(name, *stored, rank);
  return *stored;
}

Shape Binder::conv_shape(std::string_view module, int64_t kernel) const {
  const std::string name = prefix_ + std::string(module);
  const auto stored = conv_weight_shape(*source_, name);
  if (!stored) fail("codec convolution ", name, ": expected a weight, got no such tensor");
  check_dimensions(name, *stored, 3);
  if (kernel != 0 && (*stored)[2] != kernel) {
    fail("codec convolution ", name, ": expected kernel ", kernel, ", got ", stored->text());
  }
  return *stored;
}

View Binder::stored(std::string_view tensor, const Shape& shape) const {
  return source_->need({{prefix_ + std::string(tensor)}, shape, kFloats});
}

View Binder::vector(std::string_view tensor, int64_t size) const {
  return ops_->prepare_vector(stored(tensor, Shape{size}));
}

Norm Binder::norm(std::string_view tensor, int64_t size, float eps) const {
  return {.weight = vector(tensor, size), .eps = eps};
}

Snake Binder::snake(std::string_view module, int64_t channels) const {
  return {.alpha = ops_->prepare_vector(stored(join(module, ".alpha"), Shape{1, channels, 1}))};
}

Linear Binder::linear(std::string_view module, int64_t out, int64_t in, bool with_bias) const {
  const StoredMatrix matrix = source_->need_matrix({join(prefix_, module, ".weight")}, out, in);
  return ops_->prepare_linear(matrix, with_bias ? stored(join(module, ".bias"), Shape{out}) : View{});
}

Conv Binder::conv(std::string_view module, const Conv& sizes) const {
  const Shape shape{sizes.out, sizes.depthwise ? 1 : sizes.in, sizes.kernel};
  const auto weight = fold_conv_weight(*source_, prefix_ + std::string(module), shape);
  const auto bias = widen(stored(join(module, ".bias"), Shape{sizes.out}));
  return ops_->prepare_conv({host_view(weight, shape), host_view(bias, Shape{sizes.out})}, sizes);
}

ConvTranspose Binder::conv_transpose(std::string_view module, const ConvTranspose& sizes) const {
  const Shape shape{sizes.in, sizes.out, sizes.kernel};
  const auto weight = fold_conv_weight(*source_, prefix_ + std::string(module), shape);
  const auto bias = widen(stored(join(module, ".bias"), Shape{sizes.out}));
  return ops_->prepare_conv_transpose({host_view(weight, shape), host_view(bias, Shape{sizes.out})}, sizes);
}

}  // namespace drama3::codec
