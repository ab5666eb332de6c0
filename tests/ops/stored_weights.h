// Random weights in each stored type, misaligned, with block scales where the type is FP8.
#pragma once

#include <memory>

#include "lib/base/scalars.h"
#include "tests/ops/backends.h"

namespace drama3::test {

// A stored matrix and the Linear that reads it in place.
class StoredLinear {
 public:
  // scale_type is that of FP8 block scales.
  StoredLinear(int64_t out, int64_t in, DType type, uint32_t seed, DType scale_type = DType::kF32) {
    const FloatRows values = random_rows(out, in, seed, type == DType::kF8E4M3 ? 400.0f : 1.0f);
    weight_ = store(values, type);
    if (type == DType::kF8E4M3) {
      scale_ = store(random_rows((out + 127) / 128, (in + 127) / 128, seed + 1, 0.01f), scale_type);
    }
    linear_ = {.out = out, .in = in, .weight = weight_.view, .scale = scale_.view, .bias = {}, .packed = {}};
  }
  const Linear& linear() const { return linear_; }
  void set_bias(const View& bias) { linear_.bias = bias; }
  // The weight's value, scale included.
  float value(int64_t row, int64_t col) const {
    const float plain = stored_value(linear_.weight, row, col);
    return linear_.scale.empty() ? plain : plain * stored_value(linear_.scale, row / 128, col / 128);
  }

 private:
  struct Stored {
    std::shared_ptr<std::vector<uint8_t>> bytes;
    View view;
  };
  static Stored store(const FloatRows& values, DType type) {
    const View from = values.view();
    Stored stored{std::make_shared<std::vector<uint8_t>>(from.elements() * dtype_size(type) + 1), {}};
    uint8_t* at = stored.bytes->data() + 1;  // odd address
    stored.view = View(at, type, from.shape);
    for (int64_t i = 0; i < from.elements(); ++i) {
      const float value = from.row<float>(0)[i];
      const uint16_t half = type == DType::kF16 ? float_to_f16(value) : float_to_bf16(value);
      const uint8_t code = float_to_e4m3(value);
      const void* source = type == DType::kF32      ? static_cast<const void*>(&value)
                           : type == DType::kF8E4M3 ? static_cast<const void*>(&code)
                                                    : static_cast<const void*>(&half);
      std::memcpy(at + i * static_cast<int64_t>(dtype_size(type)), source, dtype_size(type));
    }
    return stored;
  }

  Stored weight_, scale_;
  Linear linear_;
};

}  // namespace drama3::test
