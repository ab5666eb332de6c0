// The table of the tower's tensor names, with the accepted spellings of its blocks, and their binding.
#include "lib/tower/weights.h"

#include <string>

#include "lib/base/error.h"

namespace drama3::tower {
namespace {

constexpr const char* kShared = "audio_decoder_mtp_shared.layers.";
constexpr const char* kResidual = "audio_decoder_mtp.layers.";
constexpr const char* kCodeEmbeddings = "audio_decoder.codebook_embeddings.weight";
constexpr const char* kHeads = "audio_decoder_mtp.heads.";  // + "<k>.weight"

// Names that stand directly in a layer.
constexpr const char* kEmbeddingNorm = "enorm.weight";
constexpr const char* kHiddenNorm = "hnorm.weight";
constexpr const char* kCombine = "eh_proj.weight";
constexpr const char* kOutNorm = "out_norm.weight";

// The transformer block's inner spelling is unknown until real files are at hand: it stands under one of
// these ...
const std::vector<std::string> kBlocks = {"block.", "", "transformer.", "layer.", "mtp_block."};
// ... and each tensor has one of these names.
using Spellings = std::vector<std::string>;
const Spellings kAttentionNorm = {"attention_norm.weight", "input_layernorm.weight"};
const Spellings kQkv = {"attention.wqkv.weight"};
const Spellings kQuery = {"attention.wq.weight", "attention.q_proj.weight", "self_attn.q_proj.weight"};
const Spellings kKey = {"attention.wk.weight", "attention.k_proj.weight", "self_attn.k_proj.weight"};
const Spellings kValue = {"attention.wv.weight", "attention.v_proj.weight", "self_attn.v_proj.weight"};
const Spellings kQueryNorm = {"attention.q_norm.weight", "self_attn.q_norm.weight"};
const Spellings kKeyNorm = {"attention.k_norm.weight", "self_attn.k_norm.weight"};
const Spellings kOut = {"attention.wo.weight", "attention.o_proj.weight", "self_attn.o_proj.weight"};
const Spellings kFfnNorm = {"ffn_norm.weight", "post_attention_layernorm.weight"};
const Spellings kGate = {"feed_forward.w1.weight", "mlp.gate_proj.weight"};
const Spellings kUp = {"feed_forward.w3.weight", "mlp.up_proj.weight"};
const Spellings kDown = {"feed_forward.w2.weight", "mlp.down_proj.weight"};

const std::vector<DType> kFloats = {DType::kF32, DType::kBF16, DType::kF16};

// Reads the tensors of one layer.
class Binder {
 public:
  Binder(Ops& ops, WeightSource& source, const std::string& prefix, float eps)
      : ops_(ops), source_(source), prefix_(prefix), eps_(eps) {}

  Norm norm(const std::string& name, int64_t size) { return norm_of({prefix_ + name}, size); }
  Norm block_norm(const Spellings& names, int64_t size) { return norm_of(spelled(names), size); }
  Norm optional_block_norm(const Spellings& names, int64_t size) {
    const auto stored = source_.find({spelled(names), Shape{size}, kFloats});
    return stored ? Norm{.weight = ops_.prepare_vector(*stored), .eps = eps_} : Norm{};
  }
  Linear linear(const std::string& name, int64_t out, int64_t in) {
    return ops_.prepare_linear(source_.need_matrix({prefix_ + name}, out, in));
  }
  Linear block_linear(const Spellings& names, int64_t out, int64_t in) {
    return ops_.prepare_linear(source_.need_matrix(spelled(names), out, in));
  }
  bool has_block(const Spellings& names) const {
    for (const std::string& name : spelled(names)) {
      if (source_.shape_of(name)) return true;
    }
    return false;
  }

 private:
  Norm norm_of(const Spellings& names, int64_t size) {
    return {.weight = ops_.prepare_vector(source_.need({names, Shape{size}, kFloats})), .eps = eps_};
  }
  Spellings spelled(const Spellings& names) const {
    Spellings all;
    for (const std::string& block : kBlocks) {
      for (const std::string& name : names) all.push_back(prefix_ + block + name);
    }
    return all;
  }

  Ops& ops_;
  WeightSource& source_;
  std::string prefix_;
  float eps_;
};

std::vector<QkvPart> load_qkv(Binder& binder, const Config& config) {
  const int64_t width = config.heads * config.head_dim;
  const int64_t kv_width = config.kv_heads * config.head_dim;
  std::vector<QkvPart> parts;
  if (binder.has_block(kQkv)) {
    parts.push_back({.column = 0, .weight = binder.block_linear(kQkv, width + 2 * kv_width, config.dim)});
    return parts;
  }
  parts.push_back({.column = 0, .weight = binder.block_linear(kQuery, width, config.dim)});
  parts.push_back({.column = width, .weight = binder.block_linear(kKey, kv_width, config.dim)});
  parts.push_back({.column = width + kv_width, .weight = binder.block_linear(kValue, kv_width, config.dim)});
  return parts;
}

LayerWeights load_layer(Ops& ops, WeightSource& source, const std::string& prefix, const Config& config) {
  Binder binder(ops, source, prefix, config.eps);
  const int64_t dim = config.dim;
  return {.embedding_norm = binder.norm(kEmbeddingNorm, dim),
          .hidden_norm = binder.norm(kHiddenNorm, dim),
          .combine = binder.linear(kCombine, dim, 2 * dim),
          .attention_norm = binder.block_norm(kAttentionNorm, dim),
          .qkv = load_qkv(binder, config),
          .query_norm = binder.optional_block_norm(kQueryNorm, config.head_dim),
          .key_norm = binder.optional_block_norm(kKeyNorm, config.head_dim),
          .out = binder.block_linear(kOut, dim, config.heads * config.head_dim),
          .ffn_norm = binder.block_norm(kFfnNorm, dim),
          .gate = binder.block_linear(kGate, config.ffn, dim),
          .up = binder.block_linear(kUp, config.ffn, dim),
          .down = binder.block_linear(kDown, dim, config.ffn),
          .out_norm = binder.norm(kOutNorm, dim)};
}

// Heads have as many rows as their codebook has entries, at most the vocabulary's.
Linear load_head(Ops& ops, WeightSource& source, int64_t codebook, const Config& config) {
  const std::string name = kHeads + std::to_string(codebook) + ".weight";
  const auto shape = source.shape_of(name);
  const int64_t entries = shape && shape->rank() == 2 ? (*shape)[0] : config.code_vocabulary;
  if (entries < 1 || entries > config.code_vocabulary) {
    fail(name, ": expected 1 to ", config.code_vocabulary, " rows (audio_decoder_config.vocab_size), got ",
         entries);
  }
  return ops.prepare_linear(source.need_matrix({name}, entries, config.dim));
}

}  // namespace

Weights load_weights(Ops& ops, WeightSource& source, const Config& config) {
  Weights weights;
  const Shape table{config.codebooks * config.code_vocabulary, config.dim};
  weights.code_embeddings = ops.prepare_table(source.need({{kCodeEmbeddings}, table, kFloats}));
  for (int64_t i = 0; i < config.shared_layers; ++i) {
    weights.shared.push_back(load_layer(ops, source, kShared + std::to_string(i) + ".", config));
  }
  for (int64_t k = 0; k < config.residual_layers(); ++k) {
    weights.residual.push_back(load_layer(ops, source, kResidual + std::to_string(k) + ".", config));
    weights.heads.push_back(load_head(ops, source, k, config));
  }
  return weights;
}

}  // namespace drama3::tower
