// The tensors of a pickled PyTorch state dict, read by a machine that knows nothing else and runs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"

namespace drama3 {

// One tensor over a storage that the pickle names: element [i, j, ...] is storage[offset + i * strides[0] +
// ...].
struct PickledTensor {
  std::string name;
  DType type = DType::kF32;
  std::string storage;            // key of the storage
  uint64_t storage_elements = 0;  // as the pickle states them
  uint64_t offset = 0;            // in elements
  Shape shape;
  Shape strides;  // in elements, as many as sizes
};

// The tensors of a protocol-2 pickle that is a dict (or OrderedDict) of tensors, or {"state_dict": such a
// dict}, in the pickle's order. Only the opcodes and globals of a state dict are known; any other is an Error
// that names it. Every tensor lies within the elements its storage states. file is for messages only.
std::vector<PickledTensor> parse_state_dict(const std::string& file, std::span<const std::byte> bytes);

}  // namespace drama3
