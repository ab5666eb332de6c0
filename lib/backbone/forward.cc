// The layer graph of the backbone: tokens and frames in, final-norm hidden rows and candidate logits out.
#include <algorithm>
#include <cmath>

#include "lib/backbone/backbone.h"
#include "lib/ops/rope.h"

namespace drama3::backbone {

Backbone::Backbone(Workspace& workspace, const Config& config, const Weights& weights,
                   const EmbedTables& tables, int64_t capacity)
    : ops_(workspace.ops()),
      config_(config),
      weights_(weights),
      tables_(tables),
      rope_(
          make_rope(workspace, {.positions = capacity, .rotary = config.rotary, .theta = config.rope_theta})),
      state_(make_state(workspace, config, capacity)),
      scratch_(make_scratch(workspace, config, weights.layers.front().moe)) {}

void Backbone::reset() { drama3::backbone::reset(ops_, state_); }

void Backbone::run(const View& hidden, const RowSource& source, const Probe& probe) {
  const int64_t total = hidden.rows();
  for (int64_t begin = 0; begin < total; begin += ops_.max_rows()) {
    const int64_t rows = std::min(total - begin, ops_.max_rows());
    const Scratch s = first_rows(scratch_, rows);
    const RowSource part{source.ids.cols_from(begin, rows), source.codes.rows_from(begin, rows)};
    ops_.embed(s.x, part, tables_);
    layers(s, 0, static_cast<int>(config_.layers.size()), probe, begin);
    ops_.copy(hidden.rows_from(begin, rows), s.normed);
    ops_.advance(state_.position, rows);
  }
}

void Backbone::layers(const Scratch& s, int begin, int end, const Probe& probe, int64_t first_row) {
  const int last = static_cast<int>(weights_.layers.size()) - 1;
  ops_.rms_norm(s.normed, s.x, weights_.layers[static_cast<size_t>(begin)].input_norm);
  for (int i = begin; i < end; ++i) {
    const LayerWeights& layer = weights_.layers[static_cast<size_t>(i)];
    const LayerState& state = state_.layers[static_cast<size_t>(i)];
    const Norm& next_norm =
        i < last ? weights_.layers[static_cast<size_t>(i) + 1].input_norm : weights_.final_norm;
    if (probe.layer_in) probe.layer_in(i, s.x);

    if (config_.layers[static_cast<size_t>(i)] == Mixer::kDelta) {
      delta_mixer(s, layer.delta, state.delta);
    } else {
      attention_mixer(s, layer.attention, state.cache);
    }
    ops_.add_rms_norm(s.normed, s.x, s.update, layer.post_norm);

    MoeReplay replay{.quantize_activations = probe.quantize_activations, .forced_indices = {}};
    if (!probe.forced_routing.empty()) {
      replay.forced_indices = probe.forced_routing[static_cast<size_t>(i)].rows_from(first_row, s.x.rows());
    }
    ops_.moe(s.update, s.normed, layer.moe, replay, s.moe);
    if (probe.routing) probe.routing(i, s.moe.routing);
    ops_.add_rms_norm(s.normed, s.x, s.update, next_norm);
  }
}

void Backbone::delta_mixer(const Scratch& s, const DeltaWeights& weights, const DeltaState& state) {
  const Projection projections[] = {
      {s.qkv, &weights.qkv}, {s.z, &weights.z}, {s.b, &weights.b}, {s.a, &weights.a}};
  ops_.project(projections, s.normed);
  const View mixed = s.mixed.cols_from(0, config_.delta.values());
  const DeltaMix mix{.qkv = s.qkv,
                     .z = s.z,
                     .b = s.b,
                     .a = s.a,
                     .conv = weights.conv,
                     .a_log = weights.a_log,
                     .dt_bias = weights.dt_bias,
                     .norm = weights.norm,
                     .dims = config_.delta};
  ops_.delta_mix(mixed, mix, state, s.delta);
  ops_.linear(s.update, mixed, weights.out);
}

void Backbone::attention_mixer(const Scratch& s, const AttentionWeights& weights, const KvCache& cache) {
  const Projection projections[] = {
      {s.query_gate, &weights.query_gate}, {s.key, &weights.key}, {s.value, &weights.value}};
  ops_.project(projections, s.normed);
  const int64_t head_dim = config_.head_dim;
  const View mixed = s.mixed.cols_from(0, config_.heads * head_dim);
  const HeadLayout query{.heads = config_.heads, .head_dim = head_dim, .stride = 2 * head_dim, .offset = 0};
  const HeadLayout gate{
      .heads = config_.heads, .head_dim = head_dim, .stride = 2 * head_dim, .offset = head_dim};
  const AttentionMix mix{.query = s.query_gate,
                         .key = s.key,
                         .value = s.value,
                         .query_layout = query,
                         .query_norm = weights.query_norm,
                         .key_norm = weights.key_norm,
                         .rope = rope_,
                         .dims = {.heads = config_.heads,
                                  .kv_heads = config_.kv_heads,
                                  .head_dim = head_dim,
                                  .window = 0,
                                  .scale = 1.0f / std::sqrt(static_cast<float>(head_dim))},
                         .gate = s.query_gate,
                         .gate_layout = gate};
  ops_.attention_mix(mixed, mix, cache, state_.position, s.attention);
  ops_.linear(s.update, mixed, weights.out);
}

void Backbone::candidate_logits(const View& out, const View& hidden_row) {
  ops_.linear(out, hidden_row, weights_.head);
}

void Backbone::run_layer(int layer, const View& x, const Probe& probe) {
  reset();
  for (int64_t begin = 0; begin < x.rows(); begin += ops_.max_rows()) {
    const View part = x.rows_from(begin, std::min(x.rows() - begin, ops_.max_rows()));
    const Scratch s = first_rows(scratch_, part.rows());
    ops_.copy(s.x, part);
    layers(s, layer, layer + 1, probe, begin);
    ops_.copy(part, s.x);
    ops_.advance(state_.position, part.rows());
  }
}

void Backbone::final_norm(const View& out, const View& x) { ops_.rms_norm(out, x, weights_.final_norm); }

}  // namespace drama3::backbone
