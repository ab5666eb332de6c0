// Where a model part finds its stored tensors by name, whatever file format they come from.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tensor/view.h"

namespace drama3 {

// One tensor that a model part asks for.
struct TensorRequest {
  std::vector<std::string> spellings;  // accepted names, any one of them
  Shape shape;                         // exact shape expected
  std::vector<DType> types;            // accepted element types
};

// A linear weight as stored: [rows, cols] in F32, F16, BF16, or FP8 e4m3 with one scale per 128 x 128 block.
struct StoredMatrix {
  View weight;  // [rows, cols]
  View scale;   // [ceil(rows/128), ceil(cols/128)] F32 or BF16; empty unless weight is FP8
};

// Views stay valid as long as the source lives. Every error names file, tensor, expected and got.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // The tensor stored under one of the spellings; Error when absent, stored twice, or of another shape or
  // type.
  virtual View need(const TensorRequest& request) = 0;
  // The same, but nothing when no spelling is stored.
  virtual std::optional<View> find(const TensorRequest& request) = 0;
  // The shape stored under this exact name, without marking it as used; nothing when absent.
  virtual std::optional<Shape> shape_of(std::string_view name) const = 0;

  // A linear weight: FP8 when its type says so and "<name>_scale_inv" is stored (block scales, all finite),
  // otherwise F32, F16 or BF16 without scales.
  virtual StoredMatrix need_matrix(const std::vector<std::string>& spellings, int64_t rows, int64_t cols) = 0;
};

}  // namespace drama3
