// A checkpoint of any sizes with random weights: every tensor that the loaders ask for is made up and
// written.
#pragma once

#include <cmath>
#include <cstring>
#include <list>
#include <random>
#include <string>
#include <vector>

#include "lib/base/scalars.h"
#include "lib/store/safetensors_writer.h"
#include "lib/tensor/weight_source.h"

namespace drama3 {

// Answers every request with random values: FP8 with F32 block scales for experts, BF16 for the rest.
class InventedWeights : public WeightSource {
 public:
  // head: the shape of the tower's heads.
  InventedWeights(uint32_t seed, const Shape& head) : random_(seed), head_(head) {}

  View need(const TensorRequest& request) override {
    const std::string& name = request.spellings.front();
    const bool gain = name.ends_with("norm.weight");
    const auto fan = static_cast<float>(request.shape[request.shape.rank() - 1]);
    return add(name, DType::kBF16, request.shape,
               gain                                      ? 0.1f
               : name.find("embed") != std::string::npos ? 1.0f
                                                         : 1.7f / std::sqrt(fan));
  }
  std::optional<View> find(const TensorRequest&) override { return std::nullopt; }
  std::optional<Shape> shape_of(std::string_view name) const override {
    if (name.find(".heads.") == std::string_view::npos) return std::nullopt;
    return head_;
  }
  StoredMatrix need_matrix(const std::vector<std::string>& spellings, int64_t rows, int64_t cols) override {
    const std::string& name = spellings.front();
    if (name.find(".experts.") == std::string::npos) return {need({spellings, Shape{rows, cols}, {}}), {}};
    const View weight = add(name, DType::kF8E4M3, Shape{rows, cols}, 1.0f);
    const View scale =
        add(name + "_scale_inv", DType::kF32, Shape{(rows + 127) / 128, (cols + 127) / 128}, 0.05f, 0.1f);
    return {weight, scale};
  }

  // The whole file.
  std::string safetensors() const {
    std::vector<SafetensorsTensor> list;
    for (const Tensor& tensor : tensors_)
      list.push_back({tensor.name, tensor.type, tensor.shape, std::as_bytes(std::span(tensor.bytes))});
    std::string file = safetensors_header(list);
    for (const Tensor& tensor : tensors_)
      file.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    return file;
  }

 private:
  struct Tensor {
    std::string name;
    DType type;
    Shape shape;
    std::vector<uint8_t> bytes;
  };

  // Uniform values in center +- range.
  View add(const std::string& name, DType type, const Shape& shape, float range, float center = 0.0f) {
    Tensor tensor{name, type, shape, {}};
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const float value = center + range * (static_cast<float>(random_() >> 8) * 0x1p-23f - 1.0f);
      uint8_t bytes[4];
      const uint16_t half = float_to_bf16(value);
      const uint8_t byte = float_to_e4m3(value);
      if (type == DType::kF32) std::memcpy(bytes, &value, sizeof value);
      if (type == DType::kBF16) std::memcpy(bytes, &half, sizeof half);
      if (type == DType::kF8E4M3) bytes[0] = byte;
      tensor.bytes.insert(tensor.bytes.end(), bytes, bytes + dtype_size(type));
    }
    tensors_.push_back(std::move(tensor));
    return {tensors_.back().bytes.data(), type, shape};
  }

  std::mt19937 random_;
  Shape head_;
  std::list<Tensor> tensors_;
};

}  // namespace drama3
