// The reference tensors of tests/data/golden, and the sizes of its tiny checkpoint.
#pragma once

#include <map>
#include <string>

#include "lib/backbone/config.h"
#include "lib/base/file.h"
#include "lib/store/safetensors.h"
#include "lib/tensor/view.h"
#include "lib/tower/config.h"

namespace drama3 {

// One safetensors file of the golden folder, mapped; Error for a name that it lacks.
class GoldenTensors {
 public:
  explicit GoldenTensors(const std::string& file) : map_(std::string(DRAMA3_TEST_DATA "/golden/") + file) {
    for (const SafetensorsEntry& entry : parse_safetensors(file, map_.bytes())) {
      const std::byte* data = map_.bytes().data() + entry.begin;
      tensors_[entry.name] = View(const_cast<std::byte*>(data), entry.type, entry.shape);
    }
  }
  View operator[](const std::string& name) const { return tensors_.at(name); }

 private:
  MappedFile map_;
  std::map<std::string, View> tensors_;
};

inline backbone::Config tiny_backbone() {
  backbone::Config config;
  config.vocabulary = 1024;
  config.hidden = 256;
  config.layers = {backbone::Mixer::kDelta, backbone::Mixer::kDelta, backbone::Mixer::kAttention};
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 256;
  config.rotary = 64;
  config.rope_theta = 1e7f;
  config.delta = {.key_heads = 2, .value_heads = 4, .key_dim = 128, .value_dim = 128, .conv_taps = 4};
  config.experts = 4;
  config.top_k = 2;
  config.expert_ffn = 128;
  config.shared_ffn = 128;
  config.semantic_start = 768;
  config.semantic_count = 256;
  config.end_token = 748;
  return config;
}

inline tower::Config tiny_tower() {
  return {.dim = 256,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 32,
          .ffn = 32,
          .eps = 1e-6f,
          .codebooks = 10,
          .code_vocabulary = 256,
          .shared_layers = 2,
          .rope_theta = 1e7f,
          .rotary = 12};
}

}  // namespace drama3
