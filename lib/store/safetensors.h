// The safetensors format: a checked table of what one file holds and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"

namespace drama3 {

// One tensor of a file; [begin, begin + bytes) lies inside the file, counted from its first byte. No
// alignment is promised.
struct SafetensorsEntry {
  std::string name;
  DType type = DType::kF32;
  Shape shape;
  uint64_t begin = 0;
  uint64_t bytes = 0;
};

// The entries of a whole file in the order of their data. Checked against the bytes that exist: the header's
// length and JSON, each entry's keys, dtype, rank and offsets, size = product of the shape, and that the
// tensors lie end to end from the header to the end of the file. file is for messages only.
std::vector<SafetensorsEntry> parse_safetensors(const std::string& file, std::span<const std::byte> bytes);

}  // namespace drama3
