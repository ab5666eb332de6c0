// Sizing of the tower's state and scratch.
#include "lib/tower/state.h"

namespace drama3::tower {

State make_state(Workspace& workspace, const Config& config, int64_t capacity) {
  const DType type = workspace.ops().activation_type();
  const Shape shape{capacity, config.kv_heads * config.head_dim};
  State state;
  state.position = workspace.take(DType::kI32, Shape{1});
  for (int64_t i = 0; i < config.shared_layers + config.residual_layers(); ++i) {
    const KvCache cache{.keys = workspace.take(type, shape), .values = workspace.take(type, shape)};
    (i < config.shared_layers ? state.shared : state.residual).push_back(cache);
  }
  return state;
}

Scratch make_scratch(Workspace& workspace, const Config& config) {
  const int64_t rows = workspace.ops().max_rows();
  const DType type = workspace.ops().activation_type();
  const int64_t width = config.heads * config.head_dim;
  const int64_t kv_width = config.kv_heads * config.head_dim;
  return {.embedding = workspace.take(type, Shape{rows, config.dim}),
          .pair = workspace.take(type, Shape{rows, 2 * config.dim}),
          .x = workspace.take(type, Shape{rows, config.dim}),
          .y = workspace.take(type, Shape{rows, config.dim}),
          .normed = workspace.take(type, Shape{rows, config.dim}),
          .qkv = workspace.take(type, Shape{rows, width + 2 * kv_width}),
          .mixed = workspace.take(type, Shape{rows, width}),
          .update = workspace.take(type, Shape{rows, config.dim}),
          .gate = workspace.take(type, Shape{rows, config.ffn}),
          .up = workspace.take(type, Shape{rows, config.ffn}),
          .product = workspace.take(type, Shape{rows, config.ffn}),
          .attention = {.query = workspace.take(type, Shape{rows, width}),
                        .key = workspace.take(type, Shape{rows, kv_width})},
          .logits = workspace.take(DType::kF32, Shape{1, config.code_vocabulary})};
}

Scratch first_rows(const Scratch& scratch, int64_t rows) {
  Scratch s = scratch;
  for (View* view : {&s.embedding, &s.pair, &s.x, &s.y, &s.normed, &s.qkv, &s.mixed, &s.update, &s.gate,
                     &s.up, &s.product, &s.attention.query, &s.attention.key}) {
    *view = view->rows_from(0, rows);
  }
  return s;
}

}  // namespace drama3::tower
