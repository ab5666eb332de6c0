// The table of the backbone's tensor names and their binding.
#include "lib/backbone/weights.h"

#include <initializer_list>
#include <string>

#include "lib/base/error.h"
#include "lib/tensor/stored_value.h"

namespace drama3::backbone {
namespace {

// Names inside "model.layers.<i>."; the store has dropped ".language_model".
constexpr const char* kInputNorm = "input_layernorm.weight";
constexpr const char* kPostNorm = "post_attention_layernorm.weight";
constexpr const char* kDeltaQkv = "linear_attn.in_proj_qkv.weight";
constexpr const char* kDeltaZ = "linear_attn.in_proj_z.weight";
constexpr const char* kDeltaB = "linear_attn.in_proj_b.weight";
constexpr const char* kDeltaA = "linear_attn.in_proj_a.weight";
constexpr const char* kDeltaConv = "linear_attn.conv1d.weight";
constexpr const char* kDeltaLogA = "linear_attn.A_log";
constexpr const char* kDeltaBias = "linear_attn.dt_bias";
constexpr const char* kDeltaNorm = "linear_attn.norm.weight";
constexpr const char* kDeltaOut = "linear_attn.out_proj.weight";
constexpr const char* kQueryGate = "self_attn.q_proj.weight";
constexpr const char* kKey = "self_attn.k_proj.weight";
constexpr const char* kValue = "self_attn.v_proj.weight";
constexpr const char* kAttentionOut = "self_attn.o_proj.weight";
constexpr const char* kQueryNorm = "self_attn.q_norm.weight";
constexpr const char* kKeyNorm = "self_attn.k_norm.weight";
constexpr const char* kRouter = "mlp.gate.weight";
constexpr const char* kExpert = "mlp.experts.";  // + "<e>." + one of the three below
constexpr const char* kGate = "gate_proj.weight";
constexpr const char* kUp = "up_proj.weight";
constexpr const char* kDown = "down_proj.weight";
constexpr const char* kFusedGateUp =
    "mlp.experts.gate_up_proj";                              // [experts, 2 * ffn, hidden], gate rows first
constexpr const char* kFusedDown = "mlp.experts.down_proj";  // [experts, hidden, ffn]
constexpr const char* kSharedExpert = "mlp.shared_expert.";
constexpr const char* kSharedGate = "mlp.shared_expert_gate.weight";
// Top level.
constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kFinalNorm = "model.norm.weight";
constexpr const char* kHead = "lm_head.weight";

const std::vector<DType> kFloats = {DType::kF32, DType::kBF16, DType::kF16};

// Reads the tensors of one prefix.
class Binder {
 public:
  Binder(Ops& ops, WeightSource& source, std::string prefix)
      : ops_(ops), source_(source), prefix_(std::move(prefix)) {}

  View stored(const std::string& name, const Shape& shape) {
    return source_.need({{prefix_ + name}, shape, kFloats});
  }
  View vector(const std::string& name, int64_t size) {
    return ops_.prepare_vector(stored(name, Shape{size}));
  }
  Norm norm(const std::string& name, int64_t size, float add, float eps) {
    return {.weight = ops_.prepare_vector(stored(name, Shape{size}), add), .eps = eps};
  }
  StoredMatrix matrix(const std::string& name, int64_t out, int64_t in) {
    return source_.need_matrix({prefix_ + name}, out, in);
  }
  Linear linear(const std::string& name, int64_t out, int64_t in) {
    return ops_.prepare_linear(matrix(name, out, in));
  }
  bool has(const std::string& name) const { return source_.shape_of(prefix_ + name).has_value(); }

  // One matrix of a fused tensor [count, out, in], with its block scales when it is FP8.
  struct Fused {
    View weight;
    View scale;
    StoredMatrix part(int64_t index, int64_t first_row, int64_t rows) const;
  };
  Fused fused(const std::string& name, int64_t count, int64_t out, int64_t in) {
    std::vector<DType> types = kFloats;
    types.push_back(DType::kF8E4M3);
    Fused tensor{.weight = source_.need({{prefix_ + name}, Shape{count, out, in}, types}), .scale = {}};
    if (tensor.weight.type == DType::kF8E4M3) {
      tensor.scale = source_.need({{prefix_ + name + "_scale_inv"},
                                   Shape{count, (out + 127) / 128, (in + 127) / 128},
                                   {DType::kF32, DType::kBF16}});
    }
    return tensor;
  }

 private:
  Ops& ops_;
  WeightSource& source_;
  std::string prefix_;
};

StoredMatrix Binder::Fused::part(int64_t index, int64_t first_row, int64_t rows) const {
  const View all(weight.data, weight.type, Shape{weight.rows(), weight.cols()});
  StoredMatrix matrix{.weight = all.rows_from(index * weight.shape[1] + first_row, rows), .scale = {}};
  if (!scale.empty()) {
    const View scales(scale.data, scale.type, Shape{scale.rows(), scale.cols()});
    matrix.scale = scales.rows_from(index * scale.shape[1] + first_row / 128, (rows + 127) / 128);
  }
  return matrix;
}

// conv1d.weight [channels, 1, taps] as [taps, channels]; tap 0 meets the oldest row.
View load_conv(Ops& ops, Binder& binder, const DeltaDims& dims) {
  const View stored = binder.stored(kDeltaConv, Shape{dims.channels(), 1, dims.conv_taps});
  std::vector<float> taps(static_cast<size_t>(stored.elements()));
  for (int64_t channel = 0; channel < dims.channels(); ++channel) {
    for (int64_t tap = 0; tap < dims.conv_taps; ++tap) {
      taps[static_cast<size_t>(tap * dims.channels() + channel)] = stored_value(stored, channel, tap);
    }
  }
  View conv = ops.prepare_vector(View(taps.data(), DType::kF32, Shape{stored.elements()}));
  return View(conv.data, DType::kF32, Shape{dims.conv_taps, dims.channels()}, conv.place);
}

DeltaWeights load_delta(Ops& ops, Binder& binder, const Config& config) {
  const DeltaDims& dims = config.delta;
  return {.qkv = binder.linear(kDeltaQkv, dims.channels(), config.hidden),
          .z = binder.linear(kDeltaZ, dims.values(), config.hidden),
          .b = binder.linear(kDeltaB, dims.value_heads, config.hidden),
          .a = binder.linear(kDeltaA, dims.value_heads, config.hidden),
          .conv = load_conv(ops, binder, dims),
          .a_log = binder.vector(kDeltaLogA, dims.value_heads),
          .dt_bias = binder.vector(kDeltaBias, dims.value_heads),
          .norm = binder.norm(kDeltaNorm, dims.value_dim, 0.0f, config.eps),
          .out = binder.linear(kDeltaOut, config.hidden, dims.values())};
}

AttentionWeights load_attention(Binder& binder, const Config& config) {
  const int64_t width = config.heads * config.head_dim;
  const int64_t kv_width = config.kv_heads * config.head_dim;
  return {.query_gate = binder.linear(kQueryGate, 2 * width, config.hidden),
          .key = binder.linear(kKey, kv_width, config.hidden),
          .value = binder.linear(kValue, kv_width, config.hidden),
          .query_norm = binder.norm(kQueryNorm, config.head_dim, 1.0f, config.eps),
          .key_norm = binder.norm(kKeyNorm, config.head_dim, 1.0f, config.eps),
          .out = binder.linear(kAttentionOut, config.hidden, width)};
}

// A handle whose weight still lies in the checkpoint: prepare_experts decides what a backend makes of it.
Linear as_stored(const StoredMatrix& matrix) {
  return {.out = matrix.weight.rows(),
          .in = matrix.weight.cols(),
          .weight = matrix.weight,
          .scale = matrix.scale,
          .bias = {},
          .packed = nullptr};
}

std::vector<Expert> load_experts(Binder& binder, const Config& config) {
  const int64_t ffn = config.expert_ffn;
  std::vector<Expert> experts(static_cast<size_t>(config.experts));
  if (binder.has(kFusedGateUp)) {
    const Binder::Fused gate_up = binder.fused(kFusedGateUp, config.experts, 2 * ffn, config.hidden);
    const Binder::Fused down = binder.fused(kFusedDown, config.experts, config.hidden, ffn);
    if (!gate_up.scale.empty() && ffn % 128 != 0) {
      fail(kFusedGateUp, ": expected an expert width that is a multiple of 128 for fused FP8 blocks, got ",
           ffn);
    }
    for (int64_t e = 0; e < config.experts; ++e) {
      experts[static_cast<size_t>(e)] = {.gate = as_stored(gate_up.part(e, 0, ffn)),
                                         .up = as_stored(gate_up.part(e, ffn, ffn)),
                                         .down = as_stored(down.part(e, 0, config.hidden))};
    }
    return experts;
  }
  for (int64_t e = 0; e < config.experts; ++e) {
    const std::string prefix = kExpert + std::to_string(e) + ".";
    experts[static_cast<size_t>(e)] = {.gate = as_stored(binder.matrix(prefix + kGate, ffn, config.hidden)),
                                       .up = as_stored(binder.matrix(prefix + kUp, ffn, config.hidden)),
                                       .down = as_stored(binder.matrix(prefix + kDown, config.hidden, ffn))};
  }
  return experts;
}

MoeMix load_moe(Ops& ops, Binder& binder, const Config& config) {
  const std::string shared = kSharedExpert;
  return {.router = binder.linear(kRouter, config.experts, config.hidden),
          .experts = ops.prepare_experts(load_experts(binder, config)),
          .shared_gate = binder.linear(kSharedGate, 1, config.hidden),
          .shared_gate_proj = binder.linear(shared + kGate, config.shared_ffn, config.hidden),
          .shared_up_proj = binder.linear(shared + kUp, config.shared_ffn, config.hidden),
          .shared_down_proj = binder.linear(shared + kDown, config.hidden, config.shared_ffn),
          .top_k = config.top_k,
          .renormalize = config.renormalize};
}

}  // namespace

Weights load_weights(Ops& ops, WeightSource& source, const Config& config) {
  Binder top(ops, source, "");
  Weights weights;
  weights.embedding = ops.prepare_table(top.stored(kEmbedding, Shape{config.vocabulary, config.hidden}));
  for (size_t i = 0; i < config.layers.size(); ++i) {
    Binder binder(ops, source, "model.layers." + std::to_string(i) + ".");
    LayerWeights layer;
    layer.input_norm = binder.norm(kInputNorm, config.hidden, 1.0f, config.eps);
    if (config.layers[i] == Mixer::kDelta) {
      layer.delta = load_delta(ops, binder, config);
    } else {
      layer.attention = load_attention(binder, config);
    }
    layer.post_norm = binder.norm(kPostNorm, config.hidden, 1.0f, config.eps);
    layer.moe = load_moe(ops, binder, config);
    weights.layers.push_back(std::move(layer));
  }
  weights.final_norm = top.norm(kFinalNorm, config.hidden, 1.0f, config.eps);
  const View head = top.stored(kHead, Shape{config.vocabulary, config.hidden});
  weights.head = ops.prepare_head(head, config.semantic_start, config.semantic_count, config.end_token);
  return weights;
}

}  // namespace drama3::backbone
