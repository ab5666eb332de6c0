// Which tensor comes from which pool.
#include <algorithm>

#include "tests/cuda/synthetic.h"

namespace drama3::cuda_test {

SyntheticSource::SyntheticSource(const tower::Config& tower, size_t largest)
    : tower_(tower),
      // Magnitudes 2^-7 to 2^-5, either sign.
      bf16_(largest,
            [this] {
              const uint32_t r = random_();
              return static_cast<uint16_t>((r & 0x8000u) | ((120u + (r & 1u)) << 7) | ((r >> 1) & 0x7fu));
            }),
      fp8_(std::min<size_t>(largest, 8 << 20),
           [this] { return static_cast<uint8_t>(random_() & 0xbfu); }),  // below 2
      f32_(kSmall, [this] { return static_cast<float>(random_() >> 8) * 0x1p-24f; }),
      scales_(kSmall, [this] {
        return float_to_bf16(0.01f + 0.01f * static_cast<float>(random_() >> 8) * 0x1p-24f);
      }) {}

View SyntheticSource::need(const TensorRequest& request) {
  const std::string& name = request.spellings.front();
  if (name.ends_with("A_log")) return f32_.window(name, DType::kF32, request.shape);
  return bf16_.window(name, DType::kBF16, request.shape);
}

std::optional<Shape> SyntheticSource::shape_of(std::string_view name) const {
  if (name.find("heads.") != std::string_view::npos) {
    return Shape{std::min<int64_t>(1024, tower_.code_vocabulary), tower_.dim};
  }
  if (name.ends_with("block.attention.wqkv.weight")) {
    return Shape{(tower_.heads + 2 * tower_.kv_heads) * tower_.head_dim, tower_.dim};
  }
  return std::nullopt;
}

StoredMatrix SyntheticSource::need_matrix(const std::vector<std::string>& spellings, int64_t rows,
                                          int64_t cols) {
  const std::string& name = spellings.front();
  if (name.find(".experts.") == std::string::npos) {
    return {.weight = bf16_.window(name, DType::kBF16, Shape{rows, cols}), .scale = {}};
  }
  const Shape blocks{(rows + 127) / 128, (cols + 127) / 128};
  return {.weight = fp8_.window(name, DType::kF8E4M3, Shape{rows, cols}),
          .scale = scales_.window(name + "_scale_inv", DType::kBF16, blocks)};
}

}  // namespace drama3::cuda_test
