// Writing of safetensors: the header of a file whose tensors follow it in the same order.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"

namespace drama3 {

// One tensor to be written; bytes are its dense values.
struct SafetensorsTensor {
  std::string name;
  DType type = DType::kF32;
  Shape shape;
  std::span<const std::byte> bytes;
};

// The length field and the header of a file that holds these tensors end to end, padded so that the data is
// 8-byte aligned. Names are UTF-8.
std::string safetensors_header(std::span<const SafetensorsTensor> tensors);

}  // namespace drama3
