// Which ops are recorded, with the model's weights, and how they are compared.
#include "apps/oracle_op.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lib/base/error.h"
#include "lib/base/scalars.h"
#include "lib/ops/rope.h"
#include "lib/ops/workspace.h"

namespace drama3 {
namespace {

constexpr const char* kFile = "ops.safetensors";
constexpr int64_t kRows = 16;

using Values = std::map<std::string, FloatTensor>;

// One call: its inputs by name in the backend's memory, its results by name on the host.
class Call {
 public:
  Call(const Replay& replay, const Values& in)
      : replay_(replay), ops_(replay.ops), in_(in), workspace_(replay.ops) {}

  Ops& ops() const { return ops_; }
  const Model& model() const { return replay_.model; }
  const Values& results() const { return out_; }

  View rows(const std::string& name) { return upload(in_.at(name), ops_.activation_type()); }
  View floats(const std::string& name) { return upload(in_.at(name), DType::kF32); }
  View codec_rows(const std::string& name) { return upload(in_.at(name), ops_.codec_type()); }
  View ints(const std::string& name) {
    const FloatTensor& tensor = in_.at(name);
    const IntTensor whole{tensor.shape, {tensor.values.begin(), tensor.values.end()}};
    const View view = fresh(DType::kI32, Shape{whole.rows(), whole.cols()});
    ops_.upload(view, view_of(whole));
    return view;
  }
  // Zeros.
  View fresh(DType type, const Shape& shape) { return workspace_.take(type, shape); }
  View fresh_rows(int64_t rows, int64_t cols) { return fresh(ops_.activation_type(), Shape{rows, cols}); }
  Workspace& workspace() { return workspace_; }

  void give(const std::string& name, const View& view) { out_[name] = downloaded_floats(ops_, view); }
  void give_ints(const std::string& name, const View& view) {
    const IntTensor whole = downloaded_ints(ops_, view);
    out_[name] = {whole.shape, {whole.values.begin(), whole.values.end()}};
  }

 private:
  View upload(const FloatTensor& tensor, DType type) {
    const View view = fresh(type, Shape{tensor.rows(), tensor.cols()});
    ops_.upload(view, view_of(tensor));
    return view;
  }

  const Replay& replay_;
  Ops& ops_;
  const Values& in_;
  Values out_;
  Workspace workspace_;
};

// The first layer with this mixer.
const backbone::LayerWeights& layer_with(const Model& model, backbone::Mixer mixer) {
  const auto& mixers = model.config.backbone.layers;
  const auto at = std::find(mixers.begin(), mixers.end(), mixer);
  if (at == mixers.end()) fail("--op: expected a model with layers of both kinds, got one of a single kind");
  return model.backbone.layers[static_cast<size_t>(at - mixers.begin())];
}
const backbone::DeltaWeights& delta_of(const Call& call) {
  return layer_with(call.model(), backbone::Mixer::kDelta).delta;
}
const backbone::LayerWeights& attention_layer(const Call& call) {
  return layer_with(call.model(), backbone::Mixer::kAttention);
}

void embed(Call& call) {
  const View ids = call.ints("ids");
  const View x = call.fresh_rows(ids.cols(), call.model().config.backbone.hidden);
  const View codes = call.fresh(DType::kI32, Shape{ids.cols(), call.model().config.tower.codebooks});
  call.ops().embed(x, {ids, codes}, call.model().tables);
  call.give("x", x);
}

void rms_norm(Call& call) {
  const View x = call.rows("x");
  const View out = call.fresh_rows(x.rows(), x.cols());
  call.ops().rms_norm(out, x, call.model().backbone.layers.front().input_norm);
  call.give("normed", out);
}

void add_rms_norm(Call& call) {
  const View sum = call.rows("x"), delta = call.rows("normed");
  const View out = call.fresh_rows(sum.rows(), sum.cols());
  call.ops().add_rms_norm(out, sum, delta, call.model().backbone.layers.front().post_norm);
  call.give("sum", sum);
  call.give("sum_normed", out);
}

void linear(Call& call) {
  const View in = call.rows("normed");
  const backbone::DeltaWeights& weights = delta_of(call);
  for (const auto& [name, weight] : {std::pair{"qkv", &weights.qkv}, std::pair{"z", &weights.z},
                                     std::pair{"b", &weights.b}, std::pair{"a", &weights.a}}) {
    const View out = call.fresh_rows(in.rows(), weight->out);
    call.ops().linear(out, in, *weight);
    call.give(name, out);
  }
}

void conv_silu(Call& call) {
  const View in = call.rows("qkv");
  const View out = call.fresh_rows(in.rows(), in.cols());
  const View tail = call.fresh_rows(call.model().config.backbone.delta.conv_taps - 1, in.cols());
  call.ops().conv_silu(out, in, delta_of(call).conv, tail);
  call.give("mixed_qkv", out);
}

void delta_gates(Call& call) {
  const backbone::DeltaWeights& weights = delta_of(call);
  const View a = call.rows("a"), b = call.rows("b");
  const View decay = call.fresh(DType::kF32, a.shape), beta = call.fresh(DType::kF32, a.shape);
  DeltaMix mix{.b = b, .a = a, .a_log = weights.a_log, .dt_bias = weights.dt_bias};
  mix.dims = call.model().config.backbone.delta;
  call.ops().delta_gates(decay, beta, mix);
  call.give("decay", decay);
  call.give("beta", beta);
}

void delta_rule(Call& call) {
  const DeltaDims& dims = call.model().config.backbone.delta;
  const View qkv = call.rows("mixed_qkv"), decay = call.floats("decay"), beta = call.floats("beta");
  const View out = call.fresh_rows(qkv.rows(), dims.values());
  const View memory = call.fresh(DType::kF32, Shape{dims.value_heads, dims.key_dim, dims.value_dim});
  call.ops().delta_rule(out, qkv, decay, beta, memory, dims);
  call.give("read", out);
}

void gated_rms_norm(Call& call) {
  const View in = call.rows("read"), z = call.rows("z");
  const View out = call.fresh_rows(in.rows(), in.cols());
  call.ops().gated_rms_norm(out, in, z, delta_of(call).norm);
  call.give("delta_out", out);
}

HeadLayout packed_heads(int64_t heads, int64_t head_dim) {
  return {.heads = heads, .head_dim = head_dim, .stride = head_dim, .offset = 0};
}

void project(Call& call) {
  const View in = call.rows("normed");
  const backbone::AttentionWeights& weights = attention_layer(call).attention;
  const View query = call.fresh_rows(in.rows(), weights.query_gate.out);
  const View key = call.fresh_rows(in.rows(), weights.key.out),
             value = call.fresh_rows(in.rows(), weights.value.out);
  const Projection outs[] = {{query, &weights.query_gate}, {key, &weights.key}, {value, &weights.value}};
  call.ops().project(outs, in);
  call.give("query_gate", query);
  call.give("key", key);
  call.give("value", value);
}

void head_norm_rope(Call& call) {
  const backbone::Config& config = call.model().config.backbone;
  const View in = call.rows("key");
  const View out = call.fresh_rows(in.rows(), in.cols());
  const Rope rope = make_rope(call.workspace(),
                              {.positions = in.rows(), .rotary = config.rotary, .theta = config.rope_theta});
  call.ops().head_norm_rope(out, in, packed_heads(config.kv_heads, config.head_dim),
                            attention_layer(call).attention.key_norm, rope,
                            call.fresh(DType::kI32, Shape{1}));
  call.give("roped_key", out);
}

// Queries are the first half of query_gate: what they are does not matter to the op.
void attend(Call& call) {
  const backbone::Config& config = call.model().config.backbone;
  const View key = call.rows("roped_key"), value = call.rows("value"), query_gate = call.rows("query_gate");
  const int64_t width = config.heads * config.head_dim, rows = key.rows();
  const View query = call.fresh_rows(rows, width), out = call.fresh_rows(rows, width);
  call.ops().copy(query, query_gate.cols_from(0, width));
  const KvCache cache{call.fresh_rows(rows, key.cols()), call.fresh_rows(rows, key.cols())};
  const View position = call.fresh(DType::kI32, Shape{1});
  call.ops().append_kv(cache, key, value, position);
  call.ops().attend(out, query, cache, position,
                    {.heads = config.heads,
                     .kv_heads = config.kv_heads,
                     .head_dim = config.head_dim,
                     .scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim))});
  call.give("attended", out);
}

void sigmoid_gate(Call& call) {
  const backbone::Config& config = call.model().config.backbone;
  const View out = call.rows("attended");
  call.ops().sigmoid_gate(out, call.rows("query_gate"),
                          {.heads = config.heads,
                           .head_dim = config.head_dim,
                           .stride = 2 * config.head_dim,
                           .offset = config.head_dim});
  call.give("gated", out);
}

void route(Call& call) {
  const MoeMix& mix = call.model().backbone.layers.front().moe;
  const View in = call.rows("sum_normed");
  const View logits = call.fresh(DType::kF32, Shape{in.rows(), mix.router.out});
  const Routing routing{call.fresh(DType::kI32, Shape{in.rows(), mix.top_k}),
                        call.fresh(DType::kF32, Shape{in.rows(), mix.top_k})};
  call.ops().linear(logits, in, mix.router);
  call.ops().route(routing, logits, mix, {});
  call.give_ints("experts", routing.indices);
  call.give("expert_weights", routing.weights);
}

void expert_ffn(Call& call) {
  const MoeMix& mix = call.model().backbone.layers.front().moe;
  const View in = call.rows("sum_normed"), out = call.fresh_rows(in.rows(), in.cols());
  const View workspace = call.fresh(DType::kU8, Shape{call.ops().expert_workspace(mix, in.rows())});
  call.ops().expert_ffn(out, in, {call.ints("experts"), call.floats("expert_weights")}, mix, {}, workspace);
  call.give("routed", out);
}

void swiglu(Call& call) {
  const View gate = call.rows("normed"), up = call.rows("sum_normed");
  const View out = call.fresh_rows(gate.rows(), gate.cols());
  call.ops().swiglu(out, gate, up);
  call.give("product", out);
}

void lookup(Call& call) {
  const codec::Quantizer& quantizer = call.model().codec.quantizers.front();
  const View codes = call.ints("codes");
  const View out = call.fresh(call.ops().codec_type(), Shape{codes.rows(), quantizer.table.cols()});
  call.ops().lookup(out, codes, quantizer.table);
  call.give("entry", out);
}

void conv(Call& call) {
  const Conv& weight = call.model().codec.quantizers.front().out;
  const View in = call.codec_rows("entry");
  const View out = call.fresh(call.ops().codec_type(), Shape{in.rows(), weight.out});
  call.ops().conv(out, in, weight, View{});
  call.give("latent", out);
}

void conv_transpose(Call& call) {
  const ConvTranspose& weight = call.model().codec.decoder.upsamples.front().up;
  const View in = call.codec_rows("latent");
  const View out = call.fresh(call.ops().codec_type(), Shape{in.rows() * weight.stride, weight.out});
  call.ops().conv_transpose(out, in, weight, View{});
  call.give("longer", out);
}

void layer_norm(Call& call) {
  const codec::ConvNext& block = call.model().codec.decoder.upsamples.front().block;
  const View out = call.codec_rows("longer");
  call.ops().layer_norm(out, out, block.norm_weight, block.norm_bias, 1e-6f);
  call.give("layer_normed", out);
}

void gelu(Call& call) {
  const View out = call.codec_rows("layer_normed");
  call.ops().gelu(out, out);
  call.give("gelu", out);
}

void residual_unit(Call& call) {
  const codec::DecoderBlock& block = call.model().codec.decoder.blocks.front();
  const DType type = call.ops().codec_type();
  const View in = call.codec_rows("latent");
  const ResidualUnit& unit = block.units.front();
  const View rows = call.fresh(type, Shape{in.rows(), unit.conv0.in});
  const int64_t shared = std::min(rows.cols(), in.cols());
  call.ops().copy(rows.cols_from(0, shared), in.cols_from(0, shared));
  const View tail = call.fresh(type, Shape{unit.conv0.history(), unit.conv0.in});
  call.ops().residual_unit(rows, rows, unit, tail, call.fresh(type, rows.shape),
                           call.fresh(type, rows.shape));
  call.give("unit", rows);
}

struct OpCase {
  std::string_view name;
  Subject subject;
  std::vector<std::string> inputs;
  void (*run)(Call&);
};

// In an order in which each finds its inputs among the results before it.
const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = {
      {"embed", Subject::kOp, {"ids"}, embed},
      {"rms_norm", Subject::kOp, {"x"}, rms_norm},
      {"add_rms_norm", Subject::kOp, {"x", "normed"}, add_rms_norm},
      {"linear", Subject::kOp, {"normed"}, linear},
      {"conv_silu", Subject::kOp, {"qkv"}, conv_silu},
      {"delta_gates", Subject::kOp, {"a", "b"}, delta_gates},
      {"delta_rule", Subject::kOp, {"mixed_qkv", "decay", "beta"}, delta_rule},
      {"gated_rms_norm", Subject::kOp, {"read", "z"}, gated_rms_norm},
      {"project", Subject::kOp, {"normed"}, project},
      {"head_norm_rope", Subject::kOp, {"key"}, head_norm_rope},
      {"attend", Subject::kOp, {"roped_key", "value", "query_gate"}, attend},
      {"sigmoid_gate", Subject::kOp, {"attended", "query_gate"}, sigmoid_gate},
      {"route", Subject::kOp, {"sum_normed"}, route},
      {"expert_ffn", Subject::kLayerForced, {"sum_normed", "experts", "expert_weights"}, expert_ffn},
      {"swiglu", Subject::kOp, {"normed", "sum_normed"}, swiglu},
      {"lookup", Subject::kOp, {"codes"}, lookup},
      {"conv", Subject::kOp, {"entry"}, conv},
      {"conv_transpose", Subject::kOp, {"latent"}, conv_transpose},
      {"layer_norm", Subject::kOp, {"longer"}, layer_norm},
      {"gelu", Subject::kOp, {"layer_normed"}, gelu},
      {"residual_unit", Subject::kOp, {"latent"}, residual_unit},
  };
  return cases;
}

std::string op_names() {
  std::string names;
  for (const OpCase& op : op_cases()) names += (names.empty() ? "" : ", ") + std::string(op.name);
  return names;
}

std::string recorded(const OpCase& op, const std::string& name) { return std::string(op.name) + "." + name; }

void compare_op(Replay& replay, ReferenceFile& file, const OpCase& op) {
  Values in;
  for (const std::string& name : op.inputs) in[name] = file.floats(recorded(op, "in." + name));
  Call call(replay, in);
  op.run(call);
  for (const auto& [name, got] : call.results()) {
    const std::string tensor = recorded(op, "out." + name);
    replay.compare({.tensor = "ops:" + tensor, .subject = op.subject}, got, file.floats(tensor));
  }
}

// Values that a 16-bit backend holds exactly: otherwise a replay there would measure how its inputs were
// rounded, which flips FP8 codes of an op that quantises them.
FloatTensor in_bf16(FloatTensor tensor) {
  for (float& value : tensor.values) value = bf16_to_float(float_to_bf16(value));
  return tensor;
}

}  // namespace

void record_ops(Replay& replay) {
  if (!replay.dump.enabled()) return;
  const auto vocabulary = static_cast<float>(replay.model.config.backbone.vocabulary);
  Values values{{"ids", {Shape{1, kRows}, {}}}, {"codes", {Shape{kRows, 1}, {}}}};
  for (int64_t r = 0; r < kRows; ++r) {
    values["ids"].values.push_back(std::floor(vocabulary * static_cast<float>(r) / kRows));
    values["codes"].values.push_back(static_cast<float>(r));
  }
  for (const OpCase& op : op_cases()) {
    Values in;
    for (const std::string& name : op.inputs) {
      in[name] = values.at(name);
      replay.dump.add(kFile, recorded(op, "in." + name), values.at(name));
    }
    Call call(replay, in);
    op.run(call);
    for (const auto& [name, result] : call.results()) {
      replay.dump.add(kFile, recorded(op, "out." + name), result);
      values[name] = name == "experts" ? result : in_bf16(result);  // those are indices
    }
  }
}

void replay_op(Replay& replay, const std::string& name) {
  ReferenceFile* file = replay.reference.file(kFile);
  if (file == nullptr) {
    fail(replay.reference.path(), ": expected ", kFile, " with recorded ops, got none; write it with --dump");
  }
  replay.stage = "op";
  for (const OpCase& op : op_cases()) {
    if (name == "all" || name == op.name) compare_op(replay, *file, op);
  }
  if (replay.comparisons.empty()) fail("--op: expected all or one of ", op_names(), ", got ", name);
}

}  // namespace drama3
