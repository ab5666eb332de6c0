// Collects the tensors that the loaders ask for, and writes them on several threads.
#include "tests/synthetic/checkpoint_writer.h"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/ref/ref_ops.h"
#include "lib/backbone/weights.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/system_calls.h"
#include "lib/store/safetensors_writer.h"
#include "lib/tower/weights.h"
#include "tests/synthetic/codec_writer.h"

namespace drama3 {
namespace {

using nlohmann::ordered_json;

// Notes every tensor that is asked for, once.
class NotingSource final : public WeightSource {
 public:
  explicit NotingSource(WeightSource& source) : source_(source) {}
  View need(const TensorRequest& request) override {
    return noted(request.spellings.front(), source_.need(request));
  }
  std::optional<View> find(const TensorRequest& request) override { return need(request); }
  std::optional<Shape> shape_of(std::string_view name) const override { return source_.shape_of(name); }
  StoredMatrix need_matrix(const std::vector<std::string>& spellings, int64_t rows, int64_t cols) override {
    const StoredMatrix matrix = source_.need_matrix(spellings, rows, cols);
    noted(spellings.front(), matrix.weight);
    if (!matrix.scale.empty()) noted(spellings.front() + "_scale_inv", matrix.scale);
    return matrix;
  }
  const std::vector<NamedTensor>& tensors() const { return tensors_; }

 private:
  View noted(const std::string& name, const View& view) {
    if (names_.insert(name).second) tensors_.push_back({name, view});
    return view;
  }
  WeightSource& source_;
  std::set<std::string> names_;
  std::vector<NamedTensor> tensors_;
};

std::span<const std::byte> bytes_of(const View& view) {
  return {static_cast<const std::byte*>(view.data), view.bytes()};
}

void write_at(const File& file, std::span<const std::byte> data, uint64_t offset) {
  while (!data.empty()) {
    const ssize_t written = sys::pwrite(file.fd(), data.data(), data.size(), static_cast<off_t>(offset));
    if (written <= 0) {
      const int error_number = written < 0 ? errno : ENOSPC;
      fail(file.path(), ": cannot write at byte ", offset, ": ", error_text(error_number));
    }
    data = data.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
}

void write_text(const std::string& path, const std::string& text) {
  File file = File::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  file.write_all(std::as_bytes(std::span(text)));
  file.close();
}

// A file of these tensors, written by `threads` threads and flushed; its size.
uint64_t write_shard(const std::string& path, std::span<const NamedTensor> tensors, int threads) {
  std::vector<SafetensorsTensor> list;
  for (const NamedTensor& tensor : tensors)
    list.push_back({tensor.name, tensor.view.type, tensor.view.shape, bytes_of(tensor.view)});
  const std::string header = safetensors_header(list);
  std::vector<uint64_t> offsets{header.size()};
  for (const SafetensorsTensor& tensor : list) offsets.push_back(offsets.back() + tensor.bytes.size());

  File file = File::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  write_at(file, std::as_bytes(std::span(header)), 0);
  std::atomic<size_t> next{0};
  std::vector<std::future<void>> writers;
  for (int i = 0; i < threads; ++i) {
    writers.push_back(std::async(std::launch::async, [&] {
      for (size_t t = next++; t < list.size(); t = next++) write_at(file, list[t].bytes, offsets[t]);
    }));
  }
  for (std::future<void>& writer : writers) writer.get();
  file.sync();
  file.close();
  return offsets.back();
}

// All shards and their index; the bytes of the shards.
uint64_t write_shards(const std::string& folder, const std::vector<NamedTensor>& tensors, int threads,
                      uint64_t shard_bytes) {
  std::vector<size_t> begins{0};
  uint64_t filled = 0, total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t bytes = tensors[i].view.bytes();
    if (filled > 0 && filled + bytes > shard_bytes) {
      begins.push_back(i);
      filled = 0;
    }
    filled += bytes;
    total += bytes;
  }
  begins.push_back(tensors.size());
  ordered_json index = {{"metadata", {{"total_size", total}}}, {"weight_map", ordered_json::object()}};
  uint64_t written = 0;
  for (size_t shard = 0; shard + 1 < begins.size(); ++shard) {
    char name[64];
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", shard + 1, begins.size() - 1);
    const std::span<const NamedTensor> part(tensors.data() + begins[shard],
                                            begins[shard + 1] - begins[shard]);
    written += write_shard(folder + "/" + name, part, threads);
    for (const NamedTensor& tensor : part) index["weight_map"][tensor.name] = name;
  }
  write_text(folder + "/model.safetensors.index.json", index.dump(1));
  return written;
}

ordered_json text_config(const backbone::Config& config) {
  ordered_json types = ordered_json::array();
  for (const backbone::Mixer mixer : config.layers)
    types.push_back(mixer == backbone::Mixer::kDelta ? "linear_attention" : "full_attention");
  return {{"vocab_size", config.vocabulary},
          {"hidden_size", config.hidden},
          {"num_hidden_layers", config.layers.size()},
          {"num_attention_heads", config.heads},
          {"num_key_value_heads", config.kv_heads},
          {"head_dim", config.head_dim},
          {"linear_conv_kernel_dim", config.delta.conv_taps},
          {"linear_key_head_dim", config.delta.key_dim},
          {"linear_value_head_dim", config.delta.value_dim},
          {"linear_num_key_heads", config.delta.key_heads},
          {"linear_num_value_heads", config.delta.value_heads},
          {"moe_intermediate_size", config.expert_ffn},
          {"shared_expert_intermediate_size", config.shared_ffn},
          {"num_experts_per_tok", config.top_k},
          {"num_experts", config.experts},
          {"rms_norm_eps", 1e-6},
          {"max_position_embeddings", 32768},
          {"rope_parameters",
           {{"rope_theta", 1e7},
            {"partial_rotary_factor",
             static_cast<double>(config.rotary) / static_cast<double>(config.head_dim)}}},
          {"layer_types", types}};
}

ordered_json model_config(const SyntheticSizes& sizes) {
  const tower::Config& tower = sizes.tower;
  return {{"architectures", {"FishOmniModel"}},
          {"model_type", "fish_omni"},
          {"text_config", text_config(sizes.backbone)},
          {"audio_decoder_config",
           {{"dim", tower.dim},
            {"n_head", tower.heads},
            {"n_local_heads", tower.kv_heads},
            {"head_dim", tower.head_dim},
            {"intermediate_size", tower.ffn},
            {"norm_eps", 1e-6},
            {"num_codebooks", tower.codebooks},
            {"vocab_size", tower.code_vocabulary},
            {"shared_enrichment_layers", tower.shared_layers},
            {"rope_base", 1e7},
            {"rotary_percent", static_cast<double>(tower.rotary) / static_cast<double>(tower.head_dim)},
            {"vq_backbone_codebooks", 1}}},
          {"semantic_start_token_id", sizes.backbone.semantic_start},
          {"semantic_end_token_id", sizes.backbone.semantic_start + sizes.backbone.semantic_count - 1},
          {"eos_token_id", sizes.backbone.end_token}};
}

void write_codec(const std::string& path, const CodecSizes& sizes) {
  RandomCodec codec(sizes, 1);
  std::vector<NamedTensor> tensors;
  for (const std::string& name : codec.names())
    tensors.push_back({name, codec.need({{name}, *codec.shape_of(name), {sizes.type}})});
  write_codec_file(path, tensors);
}

}  // namespace

SyntheticSizes full_sizes(int layers) {
  return {.backbone = cuda_test::full_backbone(layers),
          .tower = cuda_test::full_tower(),
          .codec = {.latent = 1024,
                    .entries = 4096,
                    .layers = 8,
                    .transformer_width = 1024,
                    .inner = 1024,
                    .ffn = 3072,
                    .decoder_channels = 1536,
                    .encoder_channels = 0}};
}

SyntheticSizes small_sizes() {
  return {.backbone = cuda_test::small_backbone(),
          .tower = cuda_test::small_tower(),
          .codec = {.decoder_channels = 64, .encoder_channels = 0}};
}

uint64_t write_synthetic_checkpoint(const std::string& folder, const SyntheticSizes& sizes,
                                    const std::string& tokenizer, int threads, uint64_t shard_bytes) {
  std::filesystem::create_directories(folder);
  auto codec = std::async(std::launch::async, [&] { write_codec(folder + "/codec.pth", sizes.codec); });
  write_text(folder + "/config.json", model_config(sizes).dump(1));
  write_text(folder + "/generation_config.json", ordered_json{{"max_frames", 2048}}.dump(1));
  std::filesystem::copy_file(tokenizer, folder + "/tokenizer.json",
                             std::filesystem::copy_options::overwrite_existing);
  const auto largest = static_cast<size_t>(
      std::max(sizes.backbone.vocabulary, sizes.tower.codebooks * sizes.tower.code_vocabulary) *
      sizes.backbone.hidden);
  cuda_test::SyntheticSource source(sizes.tower, std::max(largest, size_t{1} << 20));
  NotingSource noting(source);
  RefOps ops;
  backbone::load_weights(ops, noting, sizes.backbone);
  tower::load_weights(ops, noting, sizes.tower);
  const uint64_t written = write_shards(folder, noting.tensors(), threads, shard_bytes);
  codec.get();
  return written + std::filesystem::file_size(folder + "/codec.pth");
}

}  // namespace drama3
