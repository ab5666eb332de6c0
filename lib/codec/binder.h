// Binds the tensors of one module of codec.pth by name and shape, and prepares them on a backend.
#pragma once

#include <string>
#include <string_view>

#include "lib/ops/ops.h"

namespace drama3::codec {

// Reads the tensors whose names start with `prefix`. Every error names tensor, expected and got.
class Binder {
 public:
  Binder(Ops& ops, WeightSource& source, std::string prefix = "")
      : ops_(&ops), source_(&source), prefix_(std::move(prefix)) {}

  // The binder of a module inside this one.
  Binder inside(std::string_view module) const { return {*ops_, *source_, prefix_ + std::string(module)}; }
  const std::string& prefix() const { return prefix_; }
  Ops& ops() const { return *ops_; }

  bool has(std::string_view tensor) const {
    return source_->shape_of(prefix_ + std::string(tensor)).has_value();
  }
  // The stored shape, of this rank and without a zero.
  Shape shape(std::string_view tensor, int rank) const;
  // The stored shape of a convolution's weight: three dimensions, none zero, the last one `kernel` (0: any).
  Shape conv_shape(std::string_view module, int64_t kernel) const;

  View stored(std::string_view tensor, const Shape& shape) const;
  // [size] F32.
  View vector(std::string_view tensor, int64_t size) const;
  Norm norm(std::string_view tensor, int64_t size, float eps) const;
  Snake snake(std::string_view module, int64_t channels) const;
  // [out, in] under "<module>.weight", with "<module>.bias" when asked for.
  Linear linear(std::string_view module, int64_t out, int64_t in, bool with_bias) const;
  // Sizes as given, weight norm folded, with bias.
  Conv conv(std::string_view module, const Conv& sizes) const;
  ConvTranspose conv_transpose(std::string_view module, const ConvTranspose& sizes) const;

 private:
  Ops* ops_;
  WeightSource* source_;
  std::string prefix_;
};

}  // namespace drama3::codec
