// Loading of a checkpoint and the checks between its parts.
#include "lib/engine/model.h"

#include <algorithm>
#include <future>

#include "lib/base/error.h"
#include "lib/engine/tokenizer_file.h"

namespace drama3 {
namespace {

// The codes that the language model draws must be those that the codec knows.
void check_codebooks(const ModelConfig& config, const tower::Weights& tower, const codec::Weights& codec,
                     const std::string& file) {
  if (codec.codebooks() != config.tower.codebooks) {
    fail(file, ": expected ", config.tower.codebooks, " codebooks (audio_decoder_config.num_codebooks), got ",
         codec.codebooks());
  }
  for (int64_t k = 0; k < codec.codebooks(); ++k) {
    const int64_t entries = codec.quantizers[static_cast<size_t>(k)].table.rows();
    const int64_t drawn =
        k == 0 ? config.backbone.semantic_count : tower.heads[static_cast<size_t>(k) - 1].out;
    if (entries < drawn) {
      fail(file, ": codebook ", k, ": expected at least ", drawn,
           " entries, as many as its head draws from, got ", entries);
    }
  }
}

// The config, once there is room for what it asks for.
ModelConfig admitted_config(const Ops& ops, const Checkpoint& checkpoint, const CodecFile& codec_file,
                            const Tokenizer& tokenizer, const LoadOptions& options) {
  ModelConfig config =
      parse_model_config(JsonDocument::read(checkpoint.config_path(), kConfigLimits), tokenizer);
  check_memory(ops, static_cast<int64_t>(checkpoint.total_bytes() + codec_file.total_bytes()),
               sequence_bytes(config, ops.activation_type(), options.max_rows));
  return config;
}

// The codec's weights. Weight norm is folded on the host: where weights are copied to a device, that goes on
// on a thread of its own while the others stream.
std::future<codec::Weights> start_codec(Ops& ops, CodecFile& file, const codec::Config& config,
                                        codec::Parts parts) {
  const auto how = ops.weights_in_place() ? std::launch::deferred : std::launch::async;
  return std::async(how,
                    [&ops, &file, config, parts] { return codec::load_weights(ops, file, config, parts); });
}

// Small tensors of a file lie between large ones, and each would be waited for in turn.
backbone::Weights load_backbone(Ops& ops, Checkpoint& checkpoint, const backbone::Config& config) {
  if (!ops.weights_in_place()) checkpoint.prefetch_small();
  return backbone::load_weights(ops, checkpoint, config);
}

}  // namespace

int64_t sequence_bytes(const ModelConfig& config, DType activation_type, int64_t rows) {
  const auto element = static_cast<int64_t>(dtype_size(activation_type));
  const backbone::Config& backbone = config.backbone;
  const auto attention_layers =
      std::count(backbone.layers.begin(), backbone.layers.end(), backbone::Mixer::kAttention);
  const auto delta_layers = static_cast<int64_t>(backbone.layers.size()) - attention_layers;
  const DeltaDims& delta = backbone.delta;
  const int64_t backbone_cache =
      2 * attention_layers * backbone.kv_heads * backbone.head_dim * rows * element;
  const int64_t delta_state = delta_layers * (delta.value_heads * delta.key_dim * delta.value_dim * 4 +
                                              (delta.conv_taps - 1) * delta.channels() * element);
  const tower::Config& tower = config.tower;
  const int64_t tower_layers = tower.shared_layers + tower.residual_layers();
  return backbone_cache + delta_state + 2 * tower_layers * tower.kv_heads * tower.head_dim * rows * element;
}

void check_memory(const Ops& ops, int64_t weight_bytes, int64_t state_bytes) {
  const int64_t needed =
      ops.weights_in_place() ? state_bytes : weight_bytes + std::max(state_bytes, ops.loading_bytes());
  const int64_t free = ops.free_bytes();
  if (needed <= free) return;
  fail("memory of device ", ops.name(), ": expected ", needed, " free bytes for weights and caches, got ",
       free, "; free some, lower the number of rows, or take another device");
}

Model::Model(Ops& ops, const std::string& path, const LoadOptions& options)
    : checkpoint(path),
      codec_file(checkpoint.codec_path()),
      tokenizer(load_tokenizer(checkpoint.tokenizer_path())),
      config(admitted_config(ops, checkpoint, codec_file, tokenizer, options)),
      loading_codec(start_codec(ops, codec_file, config.codec, options.codec_parts)),
      backbone(load_backbone(ops, checkpoint, config.backbone)),
      tower(tower::load_weights(ops, checkpoint, config.tower)),
      codec(loading_codec.get()),
      tables({.text = backbone.embedding,
              .codes = tower.code_embeddings,
              .code_vocabulary = config.tower.code_vocabulary,
              .semantic_start = config.backbone.semantic_start,
              .semantic_count = config.backbone.semantic_count}) {
  ops.synchronize();  // a file that cannot be read is an error here
  checkpoint.finish();
  const codec::UnusedNames unused = codec::unused_names(codec);
  codec_file.refuse_unused({.prefixes = unused.prefixes, .suffixes = unused.suffixes});
  check_codebooks(config, tower, codec, checkpoint.codec_path());
  if (options.verify) {
    checkpoint.refuse_non_finite();
    codec_file.refuse_non_finite();
  }
}

GeneratorModel generator_parts(const Model& model) {
  return {.backbone_config = model.config.backbone,
          .backbone = model.backbone,
          .tower_config = model.config.tower,
          .tower = model.tower,
          .tables = model.tables};
}

}  // namespace drama3
