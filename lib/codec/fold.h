// Convolution weights of codec.pth as plain F32: weight norm folded, other float types widened.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/tensor/weight_source.h"

namespace drama3::codec {

// The stored shape of the convolution weight of `module`, whichever way it is spelled; nothing when absent.
std::optional<Shape> conv_weight_shape(const WeightSource& source, const std::string& module);

// The convolution weight of `module` in F32: "weight" as it stands, or g * v / ||v|| with the norm over all
// axes but the first. Error when absent, of another shape, or when a row of v has no direction.
std::vector<float> fold_conv_weight(WeightSource& source, const std::string& module, const Shape& shape);

// A stored vector of any float type, widened to F32.
std::vector<float> widen(const View& stored);

}  // namespace drama3::codec
