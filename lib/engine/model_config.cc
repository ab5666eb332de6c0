// Parsing and checking of the checkpoint's JSON files.
#include "lib/engine/model_config.h"

#include <optional>
#include <string_view>

#include "lib/base/error.h"
#include "lib/text/split.h"

namespace drama3 {
namespace {

// Largest values taken for sane; a damaged file must not make us reserve memory.
constexpr uint64_t kMostLayers = 1024;
constexpr uint64_t kMostWidth = 1 << 20;
constexpr uint64_t kMostHeads = 4096;
constexpr uint64_t kMostPositions = 1 << 24;
constexpr uint64_t kMostPieceFrames = 1 << 16;

int64_t size_at(const JsonValue& object, std::string_view key, uint64_t most) {
  return static_cast<int64_t>(object.at(key).as_unsigned(1, most));
}

int64_t size_or(const JsonValue& object, std::string_view key, uint64_t most, int64_t fallback) {
  const auto value = object.find(key);
  return value ? static_cast<int64_t>(value->as_unsigned(1, most)) : fallback;
}

float number_or(const JsonValue& object, std::string_view key, double least, double most, float fallback) {
  const auto value = object.find(key);
  return value ? static_cast<float>(value->as_number(least, most)) : fallback;
}

// A member must be a multiple of another.
void require_multiple(const JsonValue& object, std::string_view key, int64_t value, int64_t of) {
  if (value % of != 0) object.at(key).refuse(join("a multiple of ", of));
}

// The even number of head dims that a share of head_dim rotates.
int64_t rotary_dims(const JsonValue& where, double share, int64_t head_dim) {
  const auto dims = static_cast<int64_t>(share * static_cast<double>(head_dim) + 1e-6);
  if (dims < 2 || dims % 2 != 0 || dims > head_dim)
    where.refuse("a share of head_dim that is an even number of dims");
  return dims;
}

// layer_types when present, else every full_attention_interval-th layer is attention.
std::vector<backbone::Mixer> parse_mixers(const JsonValue& text) {
  const auto count = static_cast<size_t>(size_at(text, "num_hidden_layers", kMostLayers));
  std::vector<backbone::Mixer> mixers;
  if (const auto types = text.find("layer_types")) {
    for (const JsonValue& type : types->elements()) {
      if (type.as_text() == "linear_attention") {
        mixers.push_back(backbone::Mixer::kDelta);
      } else if (type.as_text() == "full_attention") {
        mixers.push_back(backbone::Mixer::kAttention);
      } else {
        type.refuse("\"linear_attention\" or \"full_attention\"");
      }
    }
    if (mixers.size() != count) types->refuse(join(count, " elements, as num_hidden_layers says"));
    return mixers;
  }
  const auto interval = static_cast<size_t>(size_or(text, "full_attention_interval", kMostLayers, 4));
  for (size_t i = 0; i < count; ++i) {
    mixers.push_back((i + 1) % interval == 0 ? backbone::Mixer::kAttention : backbone::Mixer::kDelta);
  }
  return mixers;
}

void parse_attention(const JsonValue& text, backbone::Config& config) {
  config.heads = size_at(text, "num_attention_heads", kMostHeads);
  config.kv_heads = size_at(text, "num_key_value_heads", kMostHeads);
  config.head_dim = size_at(text, "head_dim", kMostHeads);
  require_multiple(text, "num_attention_heads", config.heads, config.kv_heads);
  // A missing share means 0.25 (not 1); some files repeat it outside rope_parameters.
  const auto rope = text.find("rope_parameters");
  auto share = rope ? rope->find("partial_rotary_factor") : std::nullopt;
  if (!share) share = text.find("partial_rotary_factor");
  config.rotary =
      rotary_dims(share.value_or(text), share ? share->as_number(0.0, 1.0) : 0.25, config.head_dim);
  const JsonValue& theta_home = rope && rope->find("rope_theta") ? *rope : text;
  config.rope_theta = number_or(theta_home, "rope_theta", 1.0, 1e12, 1e7f);
}

void parse_delta(const JsonValue& text, DeltaDims& delta) {
  delta.key_heads = size_at(text, "linear_num_key_heads", kMostHeads);
  delta.value_heads = size_at(text, "linear_num_value_heads", kMostHeads);
  delta.key_dim = size_at(text, "linear_key_head_dim", kMostHeads);
  delta.value_dim = size_at(text, "linear_value_head_dim", kMostHeads);
  delta.conv_taps = static_cast<int64_t>(text.at("linear_conv_kernel_dim").as_unsigned(2, 16));
  require_multiple(text, "linear_num_value_heads", delta.value_heads, delta.key_heads);
}

void parse_experts(const JsonValue& text, backbone::Config& config) {
  config.experts = size_at(text, "num_experts", 1 << 16);
  config.top_k = size_at(text, "num_experts_per_tok", static_cast<uint64_t>(config.experts));
  config.expert_ffn = size_at(text, "moe_intermediate_size", kMostWidth);
  config.shared_ffn = size_at(text, "shared_expert_intermediate_size", kMostWidth);
  const auto renormalize = text.find("norm_topk_prob");
  config.renormalize = renormalize ? renormalize->as_boolean() : true;
}

// The id in the config, or that of a token.
int64_t token_id(const JsonValue& root, std::string_view key, const Tokenizer& tokenizer,
                 std::string_view content, int64_t vocabulary) {
  if (const auto value = root.find(key)) {
    return static_cast<int64_t>(value->as_unsigned(0, static_cast<uint64_t>(vocabulary) - 1));
  }
  const auto id = tokenizer.added_token_id(content);
  if (!id) root.refuse(join("the member ", key, ", or a token ", content, " in tokenizer.json"));
  if (*id >= vocabulary) root.refuse(join("vocab_size above ", *id, ", the id of ", content));
  return *id;
}

backbone::Config parse_backbone(const JsonValue& root, const Tokenizer& tokenizer) {
  const JsonValue text = root.at("text_config");
  backbone::Config config;
  config.vocabulary = size_at(text, "vocab_size", 1 << 24);
  config.hidden = size_at(text, "hidden_size", kMostWidth);
  config.eps = number_or(text, "rms_norm_eps", 1e-20, 1.0, 1e-6f);
  config.layers = parse_mixers(text);
  parse_attention(text, config);
  parse_delta(text, config.delta);
  parse_experts(text, config);
  config.semantic_start =
      token_id(root, "semantic_start_token_id", tokenizer, "<|semantic:0|>", config.vocabulary);
  const int64_t end =
      token_id(root, "semantic_end_token_id", tokenizer, "<|semantic:4095|>", config.vocabulary);
  if (end < config.semantic_start) root.refuse("semantic_end_token_id at or above semantic_start_token_id");
  config.semantic_count = end - config.semantic_start + 1;
  config.end_token = token_id(root, "eos_token_id", tokenizer, "<|im_end|>", config.vocabulary);
  if (tokenizer.id_limit() > config.vocabulary) {
    text.at("vocab_size").refuse(join("at least ", tokenizer.id_limit(), ", the tokenizer's ids"));
  }
  return config;
}

tower::Config parse_tower(const JsonValue& root, const backbone::Config& backbone) {
  const JsonValue audio = root.at("audio_decoder_config");
  tower::Config config;
  config.dim = size_at(audio, "dim", kMostWidth);
  if (config.dim != backbone.hidden)
    audio.at("dim").refuse(join(backbone.hidden, ", the backbone's hidden_size"));
  config.heads = size_at(audio, "n_head", kMostHeads);
  config.kv_heads = size_at(audio, "n_local_heads", kMostHeads);
  require_multiple(audio, "n_head", config.heads, config.kv_heads);
  config.head_dim = size_at(audio, "head_dim", kMostHeads);
  config.ffn = size_at(audio, "intermediate_size", kMostWidth);
  config.eps = number_or(audio, "norm_eps", 1e-20, 1.0, 1e-6f);
  config.codebooks = static_cast<int64_t>(audio.at("num_codebooks").as_unsigned(2, 15));
  config.code_vocabulary = size_at(audio, "vocab_size", 1 << 20);
  config.shared_layers = size_at(audio, "shared_enrichment_layers", kMostLayers);
  config.rope_theta = number_or(audio, "rope_base", 1.0, 1e12, 1e7f);
  const auto share = audio.find("rotary_percent");
  config.rotary =
      rotary_dims(share.value_or(audio), share ? share->as_number(0.0, 1.0) : 1.0, config.head_dim);
  const auto residual = audio.find("vq_backbone_codebooks");
  if (residual && residual->as_unsigned() != 1) residual->refuse("1 (other row forms have never been seen)");
  if (config.code_vocabulary < backbone.semantic_count) {
    audio.at("vocab_size")
        .refuse(join("at least ", backbone.semantic_count, ", the number of semantic tokens"));
  }
  return config;
}

codec::Config parse_codec(const JsonValue& root) {
  codec::Config config;
  const auto codec = root.find("codec_config");
  if (!codec) return config;
  config.window_size = size_or(*codec, "window_size", 1 << 16, config.window_size);
  config.head_dim = size_or(*codec, "head_dim", kMostHeads, config.head_dim);
  config.encoder_window_size = size_or(*codec, "encoder_window_size", 1 << 16, config.encoder_window_size);
  if (config.head_dim % 2 != 0) codec->at("head_dim").refuse("an even number");
  return config;
}

}  // namespace

ModelConfig parse_model_config(const JsonDocument& document, const Tokenizer& tokenizer) {
  const JsonValue root = document.root();
  if (const auto type = root.find("model_type"); type && type->as_text() != "fish_omni") {
    type->refuse("\"fish_omni\"");
  }
  ModelConfig config;
  config.backbone = parse_backbone(root, tokenizer);
  config.tower = parse_tower(root, config.backbone);
  config.codec = parse_codec(root);
  config.max_positions = size_or(root.at("text_config"), "max_position_embeddings", kMostPositions, 32768);
  return config;
}

GenerationConfig parse_generation_config(const JsonDocument& document) {
  const JsonValue root = document.root();
  GenerationConfig config;
  SamplingSettings& sampling = config.sampling;
  sampling.temperature = number_or(root, "temperature", 0.0, 1e6, sampling.temperature);
  sampling.top_p = number_or(root, "top_p", 1e-9, 1.0, sampling.top_p);
  if (const auto top_k = root.find("top_k"))
    sampling.top_k = static_cast<int32_t>(top_k->as_unsigned(0, 1 << 30));
  if (const auto frames = root.find("max_frames")) {
    config.piece_frames = static_cast<int64_t>(frames->as_unsigned(1, kMostPieceFrames));
  }
  if (const auto rows = root.find("piece_rows")) {
    config.piece_rows =
        static_cast<int64_t>(rows->as_unsigned(static_cast<uint64_t>(kLeastPieceRows), 1 << 16));
  }
  return config;
}

}  // namespace drama3
