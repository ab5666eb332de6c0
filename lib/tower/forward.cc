// The layer graph of the tower and the order in which a frame's codes are drawn.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "lib/ops/rope.h"
#include "lib/tower/tower.h"

namespace drama3::tower {

Tower::Tower(Workspace& workspace, const Config& config, const Weights& weights, const EmbedTables& tables,
             int64_t capacity)
    : ops_(workspace.ops()),
      config_(config),
      weights_(weights),
      tables_(tables),
      rope_(make_rope(
          workspace,
          {.positions = capacity, .rotary = config.rotary, .theta = config.rope_theta, .interleaved = true})),
      state_(make_state(workspace, config, capacity)),
      scratch_(make_scratch(workspace, config)) {}

void Tower::reset() { ops_.fill(state_.position, 0); }

void Tower::append(const View& hidden, const RowSource& next, const Probe& probe) {
  for (int64_t begin = 0; begin < hidden.rows(); begin += ops_.max_rows()) {
    const int64_t rows = std::min(hidden.rows() - begin, ops_.max_rows());
    const Scratch s = first_rows(scratch_, rows);
    const RowSource part{next.ids.cols_from(begin, rows), next.codes.rows_from(begin, rows)};
    ops_.copy(s.x, hidden.rows_from(begin, rows));

    ops_.embed_next(s.embedding, part, tables_, 0);
    for (size_t l = 0; l < weights_.shared.size(); ++l) {
      layer(s, weights_.shared[l], state_.shared[l]);
      if (probe) probe("shared." + std::to_string(l), s.x);
    }
    for (size_t k = 0; k < weights_.residual.size(); ++k) {
      ops_.embed_next(s.embedding, part, tables_, static_cast<int64_t>(k));
      layer(s, weights_.residual[k], state_.residual[k]);
      if (probe) probe("residual." + std::to_string(k), s.x);
    }
    ops_.advance(state_.position, rows);
  }
}

void Tower::draw_frame(const View& hidden, const RowSource& next, const PickState& pick) {
  const Scratch s = first_rows(scratch_, 1);
  ops_.copy(s.x, hidden);

  ops_.embed_next(s.embedding, next, tables_, 0);
  for (size_t l = 0; l < weights_.shared.size(); ++l) layer(s, weights_.shared[l], state_.shared[l]);

  for (size_t k = 0; k < weights_.residual.size(); ++k) {
    const int64_t codebook = static_cast<int64_t>(k) + 1;
    ops_.embed_next(s.embedding, next, tables_, static_cast<int64_t>(k));
    layer(s, weights_.residual[k], state_.residual[k]);
    const View logits = s.logits.cols_from(0, weights_.heads[k].out);
    ops_.linear(logits, s.x, weights_.heads[k]);
    ops_.pick(next.codes.cols_from(codebook, 1), logits, pick, codebook);
  }
  ops_.advance(state_.position, 1);
}

void Tower::layer(const Scratch& s, const LayerWeights& weights, const KvCache& cache) {
  ops_.rms_norm(s.pair.cols_from(0, config_.dim), s.embedding, weights.embedding_norm);
  ops_.rms_norm(s.pair.cols_from(config_.dim, config_.dim), s.x, weights.hidden_norm);
  ops_.linear(s.y, s.pair, weights.combine);

  ops_.rms_norm(s.normed, s.y, weights.attention_norm);
  attention(s, weights, cache);
  ops_.add_rms_norm(s.normed, s.y, s.update, weights.ffn_norm);

  const Projection gate_up[] = {{s.gate, &weights.gate}, {s.up, &weights.up}};
  ops_.project(gate_up, s.normed);
  ops_.swiglu(s.product, s.gate, s.up);
  ops_.linear(s.update, s.product, weights.down);
  ops_.add_rms_norm(s.x, s.y, s.update, weights.out_norm);
}

void Tower::attention(const Scratch& s, const LayerWeights& weights, const KvCache& cache) {
  std::array<Projection, 3> projections;
  for (size_t i = 0; i < weights.qkv.size(); ++i) {
    const QkvPart& part = weights.qkv[i];
    projections[i] = {s.qkv.cols_from(part.column, part.weight.out), &part.weight};
  }
  ops_.project(std::span(projections.data(), weights.qkv.size()), s.normed);

  const int64_t width = config_.heads * config_.head_dim;
  const int64_t kv_width = config_.kv_heads * config_.head_dim;
  const AttentionMix mix{.query = s.qkv.cols_from(0, width),
                         .key = s.qkv.cols_from(width, kv_width),
                         .value = s.qkv.cols_from(width + kv_width, kv_width),
                         .query_layout = {.heads = config_.heads,
                                          .head_dim = config_.head_dim,
                                          .stride = config_.head_dim,
                                          .offset = 0},
                         .query_norm = weights.query_norm,
                         .key_norm = weights.key_norm,
                         .rope = rope_,
                         .dims = {.heads = config_.heads,
                                  .kv_heads = config_.kv_heads,
                                  .head_dim = config_.head_dim,
                                  .window = 0,
                                  .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim))},
                         .gate = {},
                         .gate_layout = {}};
  ops_.attention_mix(s.mixed, mix, cache, state_.position, s.attention);
  ops_.linear(s.update, s.mixed, weights.out);
}

}  // namespace drama3::tower
