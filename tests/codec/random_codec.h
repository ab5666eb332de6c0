// Codecs of any geometry with random weights that hold still under iteration, for tests and benchmarks.
#pragma once

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/scalars.h"
#include "lib/tensor/weight_source.h"

namespace drama3 {

// Sizes of a codec; the defaults are those of a small voice.
struct CodecSizes {
  int64_t latent = 128;
  int64_t codebooks = 10;
  int64_t entries = 256;
  int64_t code_width = 8;
  int64_t layers = 2;
  int64_t transformer_width = 128;
  int64_t inner = 128;  // heads * head_dim
  int64_t ffn = 256;
  std::vector<int64_t> factors = {2, 2};
  int64_t decoder_channels = 256;
  std::vector<int64_t> rates = {8, 8, 4, 2};
  int64_t encoder_channels = 8;  // 0: no encoder
  DType type = DType::kF32;
};

// Every tensor of such a codec under its published name.
class RandomCodec : public WeightSource {
 public:
  RandomCodec(const CodecSizes& sizes, uint32_t seed) : sizes_(sizes), random_(seed) {
    for (int64_t k = 0; k < sizes.codebooks; ++k) add_quantizer(k);
    add_transformer("quantizer.post_module.", sizes.transformer_width, sizes.inner);
    for (size_t i = 0; i < sizes.factors.size(); ++i) {
      add_resample(join("quantizer.upsample.", i, "."), sizes.factors[i]);
    }
    add_decoder();
    if (sizes.encoder_channels > 0) add_encoder();
  }

  View need(const TensorRequest& request) override {
    for (const std::string& name : request.spellings) {
      const auto at = tensors_.find(name);
      if (at == tensors_.end()) continue;
      if (!(at->second.shape == request.shape)) {
        fail(name, ": expected ", request.shape.text(), ", got ", at->second.shape.text());
      }
      return {at->second.bytes.data(), sizes_.type, at->second.shape};
    }
    fail("expected ", request.spellings.front(), ", got no such tensor");
  }
  std::optional<View> find(const TensorRequest& request) override {
    for (const std::string& name : request.spellings) {
      if (tensors_.count(name) != 0) return need(request);
    }
    return std::nullopt;
  }
  std::optional<Shape> shape_of(std::string_view name) const override {
    const auto at = tensors_.find(std::string(name));
    if (at == tensors_.end()) return std::nullopt;
    return at->second.shape;
  }
  StoredMatrix need_matrix(const std::vector<std::string>& spellings, int64_t rows, int64_t cols) override {
    return {need({spellings, Shape{rows, cols}, {sizes_.type}}), {}};
  }

  // Replaces or removes a tensor, for tests of errors.
  void reshape(const std::string& name, const Shape& shape) { add(name, shape, 0.5f); }
  void remove(const std::string& name) { tensors_.erase(name); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors_) names.push_back(name);
    return names;
  }

 private:
  struct Tensor {
    Shape shape;
    std::vector<uint8_t> bytes;
  };

  // Uniform values in center +- range.
  void add(const std::string& name, const Shape& shape, float range, float center = 0.0f) {
    Tensor tensor{shape, {}};
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const float unit = static_cast<float>(random_() >> 8) * 0x1p-23f - 1.0f;
      const float value = center + range * unit;
      uint8_t bytes[4];
      if (sizes_.type == DType::kF16) {
        const uint16_t bits = float_to_f16(value);
        std::memcpy(bytes, &bits, sizeof bits);
      } else {
        std::memcpy(bytes, &value, sizeof value);
      }
      tensor.bytes.insert(tensor.bytes.end(), bytes, bytes + dtype_size(sizes_.type));
    }
    tensors_[name] = std::move(tensor);
  }
  void add_gain(const std::string& name, int64_t size) { add(name, Shape{size}, 0.1f, 1.0f); }
  void add_linear(const std::string& module, int64_t out, int64_t in, bool with_bias) {
    add(module + ".weight", Shape{out, in}, 1.7f / std::sqrt(static_cast<float>(in)));
    if (with_bias) add(module + ".bias", Shape{out}, 0.1f);
  }
  // Weight norm over the first axis.
  void add_conv(const std::string& module, const Shape& shape, int64_t biases) {
    add(module + ".parametrizations.weight.original0", Shape{shape[0], 1, 1}, 0.2f, 0.8f);
    add(module + ".parametrizations.weight.original1", shape, 1.0f);
    add(module + ".bias", Shape{biases}, 0.1f);
  }
  void add_alpha(const std::string& module, int64_t channels) {
    add(module + ".alpha", Shape{1, channels, 1}, 0.5f, 1.0f);
  }

  void add_quantizer(int64_t k) {
    const std::string module = k == 0 ? std::string("quantizer.semantic_quantizer.quantizers.0.")
                                      : join("quantizer.quantizer.quantizers.", k - 1, ".");
    add(module + "codebook.weight", Shape{sizes_.entries, sizes_.code_width}, 1.0f);
    for (const bool out : {false, true}) {
      const int64_t to = out ? sizes_.latent : sizes_.code_width;
      const int64_t from = out ? sizes_.code_width : sizes_.latent;
      const std::string projection = module + (out ? "out_proj" : "in_proj");
      add(projection + ".weight_g", Shape{to, 1, 1}, 0.2f, 0.8f);
      add(projection + ".weight_v", Shape{to, from, 1}, 1.0f);
      add(projection + ".bias", Shape{to}, 0.1f);
    }
  }
  void add_transformer(const std::string& module, int64_t width, int64_t inner) {
    if (width != sizes_.latent && module.starts_with("quantizer")) {
      add_linear(module + "input_proj", width, sizes_.latent, true);
      add_linear(module + "output_proj", sizes_.latent, width, true);
    }
    for (int64_t i = 0; i < sizes_.layers; ++i) {
      const std::string layer = join(module, "layers.", i, ".");
      add_linear(layer + "attention.wqkv", 3 * inner, width, false);
      add_linear(layer + "attention.wo", width, inner, false);
      add_linear(layer + "feed_forward.w1", sizes_.ffn, width, false);
      add_linear(layer + "feed_forward.w3", sizes_.ffn, width, false);
      add_linear(layer + "feed_forward.w2", width, sizes_.ffn, false);
      add_gain(layer + "ffn_norm.weight", width);
      add_gain(layer + "attention_norm.weight", width);
      add(layer + "attention_layer_scale.gamma", Shape{width}, 0.3f);
      add(layer + "ffn_layer_scale.gamma", Shape{width}, 0.3f);
    }
    add_gain(module + "norm.weight", width);
  }
  // A resampling convolution without weight norm and a ConvNeXt block.
  void add_resample(const std::string& module, int64_t factor) {
    const int64_t latent = sizes_.latent;
    const float range = 1.7f / std::sqrt(static_cast<float>(latent * factor));
    add(module + "0.conv.weight", Shape{latent, latent, factor}, range);
    add(module + "0.conv.bias", Shape{latent}, 0.1f);
    add(module + "1.dwconv.conv.weight", Shape{latent, 1, 7}, 0.6f);
    add(module + "1.dwconv.conv.bias", Shape{latent}, 0.1f);
    add_gain(module + "1.norm.weight", latent);
    add(module + "1.norm.bias", Shape{latent}, 0.1f);
    add_linear(module + "1.pwconv1", 4 * latent, latent, true);
    add_linear(module + "1.pwconv2", latent, 4 * latent, true);
    add(module + "1.gamma", Shape{latent}, 0.5f);
  }
  void add_unit(const std::string& module, int64_t channels) {
    add_alpha(module + "0", channels);
    add_conv(module + "1.conv", Shape{channels, channels, 7}, channels);
    add_alpha(module + "2", channels);
    add_conv(module + "3.conv", Shape{channels, channels, 1}, channels);
  }
  void add_decoder() {
    int64_t channels = sizes_.decoder_channels;
    add_conv("decoder.model.0.conv", Shape{channels, sizes_.latent, 7}, channels);
    size_t i = 1;
    for (const int64_t rate : sizes_.rates) {
      const std::string block = join("decoder.model.", i++, ".block.");
      add_alpha(block + "0", channels);
      add_conv(block + "1.conv", Shape{channels, channels / 2, 2 * rate}, channels / 2);
      channels /= 2;
      for (int u = 2; u < 5; ++u) add_unit(join(block, u, ".block."), channels);
    }
    add_alpha(join("decoder.model.", i), channels);
    add_conv(join("decoder.model.", i + 1, ".conv"), Shape{1, channels, 7}, 1);
  }
  void add_encoder() {
    int64_t channels = sizes_.encoder_channels;
    add_conv("encoder.block.0.conv", Shape{channels, 1, 7}, channels);
    size_t i = 1;
    for (auto rate = sizes_.rates.rbegin(); rate != sizes_.rates.rend(); ++rate) {
      const std::string block = join("encoder.block.", i++, ".block.");
      for (int u = 0; u < 3; ++u) add_unit(join(block, u, ".block."), channels);
      add_alpha(block + "3", channels);
      add_conv(block + "4.conv", Shape{2 * channels, channels, 2 * *rate}, 2 * channels);
      channels *= 2;
      if (i == sizes_.rates.size() + 1) add_transformer(block + "5.", channels, 64);
    }
    add_alpha(join("encoder.block.", i), channels);
    add_conv(join("encoder.block.", i + 1, ".conv"), Shape{sizes_.latent, channels, 3}, sizes_.latent);
    for (size_t k = 0; k < sizes_.factors.size(); ++k) {
      add_resample(join("quantizer.downsample.", k, "."), sizes_.factors[k]);
    }
    add_transformer("quantizer.pre_module.", sizes_.transformer_width, sizes_.inner);
  }

  CodecSizes sizes_;
  std::mt19937 random_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace drama3
