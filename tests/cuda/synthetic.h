// A model of any size without a file: every tensor is a window of one pool of random values, finite and of
// plausible scale; for speed, not sound.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "lib/backbone/config.h"
#include "lib/base/check.h"
#include "lib/base/scalars.h"
#include "lib/tensor/weight_source.h"
#include "lib/tower/config.h"

namespace drama3::cuda_test {

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

// Sizes for tests: every kind of layer, a few megabytes.
inline backbone::Config small_backbone() {
  backbone::Config config = full_backbone(4);
  config.vocabulary = 2048;
  config.hidden = 256;
  config.heads = 2;
  config.kv_heads = 1;
  config.delta = {.key_heads = 2, .value_heads = 4, .key_dim = 128, .value_dim = 128, .conv_taps = 4};
  config.experts = 8;
  config.top_k = 2;
  config.expert_ffn = 128;
  config.shared_ffn = 128;
  config.semantic_start = 1024;
  config.semantic_count = 256;
  config.end_token = 748;
  return config;
}

inline tower::Config small_tower() {
  tower::Config config = full_tower();
  config.dim = 256;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 32;
  config.ffn = 64;
  config.code_vocabulary = 256;
  config.shared_layers = 2;
  config.rotary = 16;
  return config;
}

// Random values repeated with a prime period. A window starts where a hash of the tensor's name says, so a
// tensor's bytes depend on its name and type only: not on the machine, nor on the size of the pool.
template <typename T>
class SyntheticPool {
 public:
  // largest: elements of the largest window.
  template <typename Draw>
  SyntheticPool(size_t largest, Draw draw) : values_(kPeriod + largest) {
    std::generate_n(values_.begin(), std::min(kPeriod, values_.size()), draw);
    for (size_t at = kPeriod; at < values_.size(); at += kPeriod) {
      std::memcpy(values_.data() + at, values_.data(), std::min(kPeriod, values_.size() - at) * sizeof(T));
    }
  }

  View window(const std::string& name, DType type, const Shape& shape) {
    const size_t begin = hash(name) % kPeriod / 16 * 16;  // aligned to 16 bytes or more
    const size_t end = begin + static_cast<size_t>(shape.elements());
    INVARIANT(end <= values_.size(), name, ": a window up to ", end, " of a pool of ", values_.size());
    return View(values_.data() + begin, type, shape);
  }

 private:
  static constexpr size_t kPeriod = 1000003;

  static uint64_t hash(const std::string& name) {  // FNV-1a
    uint64_t hash = 14695981039346656037u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return hash;
  }

  std::vector<T> values_;
};

class SyntheticSource final : public WeightSource {
 public:
  // largest: elements of the largest tensor; the default holds the embedding table of the full size.
  explicit SyntheticSource(const tower::Config& tower = full_tower(), size_t largest = 252416 * 2048);

  View need(const TensorRequest& request) override;
  std::optional<View> find(const TensorRequest& request) override { return need(request); }
  std::optional<Shape> shape_of(std::string_view name) const override;
  StoredMatrix need_matrix(const std::vector<std::string>& spellings, int64_t rows, int64_t cols) override;

 private:
  static constexpr size_t kSmall = 1u << 16;  // elements of the largest A_log and the largest block of scales

  tower::Config tower_;
  std::mt19937 random_{1};  // before the pools, which draw from it in their order
  SyntheticPool<uint16_t> bf16_;
  SyntheticPool<uint8_t> fp8_;
  SyntheticPool<float> f32_;
  SyntheticPool<uint16_t> scales_;
};

}  // namespace drama3::cuda_test
