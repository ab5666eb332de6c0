// A full-size model without a file: every tensor is a window of one pool of random bytes, finite and of
// plausible scale; for speed, not sound.
#pragma once

#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "lib/backbone/config.h"
#include "lib/base/error.h"
#include "lib/base/scalars.h"
#include "lib/tensor/weight_source.h"
#include "lib/tower/config.h"

namespace drama3::cuda_test {

// Windows start where a hash of the tensor's name says, so a tensor's bytes depend on its name and shape
// only.
class SyntheticSource final : public WeightSource {
 public:
  SyntheticSource() : bf16_(kPoolBytes / 2), fp8_(kFp8Bytes), f32_(kSmall), scales_(kSmall) {
    std::mt19937 random(1);
    // Magnitudes 2^-7 to 2^-5, either sign, repeated blocks of a prime length.
    const size_t block = 1000003;
    for (size_t i = 0; i < block; ++i) {
      const uint32_t r = random();
      bf16_[i] = static_cast<uint16_t>((r & 0x8000u) | ((120u + (r & 1u)) << 7) | ((r >> 1) & 0x7fu));
    }
    for (size_t at = block; at < bf16_.size(); at += block) {
      std::memcpy(bf16_.data() + at, bf16_.data(), std::min(block, bf16_.size() - at) * 2);
    }
    for (uint8_t& code : fp8_) code = static_cast<uint8_t>(random() & 0xbfu);  // below 2
    for (float& value : f32_) value = static_cast<float>(random() >> 8) * 0x1p-24f;
    for (uint16_t& scale : scales_) {
      scale = float_to_bf16(0.01f + 0.01f * static_cast<float>(random() >> 8) * 0x1p-24f);
    }
  }

  View need(const TensorRequest& request) override {
    const std::string& name = request.spellings.front();
    const bool fp32 = name.ends_with("A_log");
    const View view(nullptr, fp32 ? DType::kF32 : DType::kBF16, request.shape);
    if (fp32) return window(f32_.data(), f32_.size() * 4, view, name);
    return window(bf16_.data(), kPoolBytes, view, name);
  }
  std::optional<View> find(const TensorRequest& request) override { return need(request); }
  std::optional<Shape> shape_of(std::string_view name) const override {
    if (name.find("heads.") != std::string_view::npos) return Shape{1024, 2048};
    if (name.ends_with("block.attention.wqkv.weight")) return Shape{6144, 2048};
    return std::nullopt;
  }
  StoredMatrix need_matrix(const std::vector<std::string>& spellings, int64_t rows, int64_t cols) override {
    const std::string& name = spellings.front();
    if (name.find(".experts.") == std::string::npos) {
      return {
          .weight = window(bf16_.data(), kPoolBytes, View(nullptr, DType::kBF16, Shape{rows, cols}), name),
          .scale = {}};
    }
    const Shape blocks{(rows + 127) / 128, (cols + 127) / 128};
    return {
        .weight = window(fp8_.data(), fp8_.size(), View(nullptr, DType::kF8E4M3, Shape{rows, cols}), name),
        .scale = window(scales_.data(), scales_.size() * 2, View(nullptr, DType::kBF16, blocks), name)};
  }

 private:
  static constexpr size_t kPoolBytes = 1100u << 20;  // holds the embedding table
  static constexpr size_t kFp8Bytes = 8u << 20;
  static constexpr size_t kSmall = 1u << 16;

  static View window(void* pool, size_t bytes, View view, const std::string& name) {
    const size_t room = bytes - view.bytes();
    const size_t at = room == 0 ? 0 : std::hash<std::string>{}(name) % room / 16 * 16;
    view.data = static_cast<std::byte*>(pool) + at;
    return view;
  }

  std::vector<uint16_t> bf16_;
  std::vector<uint8_t> fp8_;
  std::vector<float> f32_;
  std::vector<uint16_t> scales_;
};

inline backbone::Config full_backbone(int layers = 40) {
  backbone::Config config;
  config.vocabulary = 252416;
  config.hidden = 2048;
  for (int i = 0; i < layers; ++i) {
    config.layers.push_back(i % 4 == 3 ? backbone::Mixer::kAttention : backbone::Mixer::kDelta);
  }
  config.heads = 16;
  config.kv_heads = 2;
  config.head_dim = 256;
  config.rotary = 64;
  config.delta = {.key_heads = 16, .value_heads = 32, .key_dim = 128, .value_dim = 128, .conv_taps = 4};
  config.experts = 256;
  config.top_k = 8;
  config.expert_ffn = 512;
  config.shared_ffn = 512;
  config.semantic_start = 248320;
  config.semantic_count = 4096;
  config.end_token = 248046;
  return config;
}

inline tower::Config full_tower() {
  return {.dim = 2048,
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .ffn = 9728,
          .eps = 1e-6f,
          .codebooks = 10,
          .code_vocabulary = 4096,
          .shared_layers = 4,
          .rope_theta = 1e7f,
          .rotary = 64};
}

}  // namespace drama3::cuda_test
