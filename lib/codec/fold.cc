// The three spellings of a convolution weight, and weight norm in F32.
#include "lib/codec/fold.h"

#include <cmath>

#include "lib/base/error.h"
#include "lib/tensor/stored_value.h"

namespace drama3::codec {
namespace {

// After "<module>.": the plain weight, and both spellings of weight norm's length and direction.
constexpr const char* kPlain = ".weight";
constexpr const char* kLength[] = {".parametrizations.weight.original0", ".weight_g"};
constexpr const char* kDirection[] = {".parametrizations.weight.original1", ".weight_v"};

const std::vector<DType> kFloats = {DType::kF32, DType::kF16, DType::kBF16};

}  // namespace

std::optional<Shape> conv_weight_shape(const WeightSource& source, const std::string& module) {
  for (const char* suffix : {kPlain, kDirection[0], kDirection[1]}) {
    if (const auto shape = source.shape_of(module + suffix)) return shape;
  }
  return std::nullopt;
}

std::vector<float> fold_conv_weight(WeightSource& source, const std::string& module, const Shape& shape) {
  if (source.shape_of(module + kPlain)) return widen(source.need({{module + kPlain}, shape, kFloats}));
  Shape ones{shape[0]};
  for (int axis = 1; axis < shape.rank(); ++axis) ones.append(1);
  const auto length = widen(source.need({{module + kLength[0], module + kLength[1]}, ones, kFloats}));
  auto weight = widen(source.need({{module + kDirection[0], module + kDirection[1]}, shape, kFloats}));
  const size_t width = weight.size() / length.size();
  for (size_t row = 0; row < length.size(); ++row) {
    double squares = 0.0;
    for (size_t i = 0; i < width; ++i) {
      const double value = weight[row * width + i];
      squares += value * value;
    }
    const float norm = static_cast<float>(std::sqrt(squares));
    if (!(norm > 0.0f) || !std::isfinite(norm)) {
      fail("codec tensor ", module, kDirection[0], " (or ", kDirection[1],
           "): expected a finite direction in row ", row, ", got one of length ", norm);
    }
    for (size_t i = 0; i < width; ++i) {
      weight[row * width + i] = length[row] * weight[row * width + i] / norm;
    }
  }
  return weight;
}

std::vector<float> widen(const View& stored) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(stored.elements()));
  for (int64_t row = 0; row < stored.rows(); ++row) {
    for (int64_t col = 0; col < stored.cols(); ++col) values.push_back(stored_value(stored, row, col));
  }
  return values;
}

}  // namespace drama3::codec
