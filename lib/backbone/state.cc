// Sizing of the backbone's state and scratch.
#include "lib/backbone/state.h"

#include <algorithm>

namespace drama3::backbone {
State make_state(Workspace& workspace, const Config& config, int64_t capacity) {
  State state;
  const DType type = workspace.ops().activation_type();
  const DeltaDims& delta = config.delta;
  state.position = workspace.take(DType::kI32, Shape{1});
  for (Mixer mixer : config.layers) {
    LayerState layer;
    if (mixer == Mixer::kDelta) {
      layer.delta.tail = workspace.take(type, Shape{delta.conv_taps - 1, delta.channels()});
      layer.delta.memory =
          workspace.take(DType::kF32, Shape{delta.value_heads, delta.key_dim, delta.value_dim});
    } else {
      layer.cache.keys = workspace.take(type, Shape{capacity, config.kv_heads * config.head_dim});
      layer.cache.values = workspace.take(type, Shape{capacity, config.kv_heads * config.head_dim});
    }
    state.layers.push_back(layer);
  }
  return state;
}

void reset(Ops& ops, State& state) {
  ops.fill(state.position, 0);
  for (LayerState& layer : state.layers) {
    for (const View& view : {layer.delta.tail, layer.delta.memory}) {
      if (!view.empty()) ops.fill(view, 0);
    }
  }
}

Scratch make_scratch(Workspace& workspace, const Config& config, const MoeMix& moe) {
  Scratch s;
  Ops& ops = workspace.ops();
  const int64_t rows = ops.max_rows();
  const DType type = ops.activation_type();
  const DeltaDims& delta = config.delta;
  const int64_t width = config.heads * config.head_dim;
  const int64_t kv_width = config.kv_heads * config.head_dim;
  s.x = workspace.take(type, Shape{rows, config.hidden});
  s.normed = workspace.take(type, Shape{rows, config.hidden});
  s.mixed = workspace.take(type, Shape{rows, std::max(delta.values(), width)});
  s.update = workspace.take(type, Shape{rows, config.hidden});
  s.qkv = workspace.take(type, Shape{rows, delta.channels()});
  s.z = workspace.take(type, Shape{rows, delta.values()});
  s.b = workspace.take(type, Shape{rows, delta.value_heads});
  s.a = workspace.take(type, Shape{rows, delta.value_heads});
  s.query_gate = workspace.take(type, Shape{rows, 2 * width});
  s.key = workspace.take(type, Shape{rows, kv_width});
  s.value = workspace.take(type, Shape{rows, kv_width});
  s.delta = {.conv = workspace.take(type, Shape{rows, delta.channels()}),
             .decay = workspace.take(DType::kF32, Shape{rows, delta.value_heads}),
             .beta = workspace.take(DType::kF32, Shape{rows, delta.value_heads}),
             .read = workspace.take(type, Shape{rows, delta.values()})};
  s.attention = {.query = workspace.take(type, Shape{rows, width}),
                 .key = workspace.take(type, Shape{rows, kv_width})};
  s.moe = {.router = workspace.take(DType::kF32, Shape{rows, config.experts}),
           .routing = {.indices = workspace.take(DType::kI32, Shape{rows, config.top_k}),
                       .weights = workspace.take(DType::kF32, Shape{rows, config.top_k})},
           .routed = workspace.take(type, Shape{rows, config.hidden}),
           .shared_gate = workspace.take(type, Shape{rows, 1}),
           .gate = workspace.take(type, Shape{rows, config.shared_ffn}),
           .up = workspace.take(type, Shape{rows, config.shared_ffn}),
           .shared = workspace.take(type, Shape{rows, config.hidden}),
           .experts = workspace.take(DType::kU8, Shape{ops.expert_workspace(moe, rows)})};
  return s;
}

Scratch first_rows(const Scratch& scratch, int64_t rows) {
  Scratch s = scratch;
  for (View* view : {&s.x,
                     &s.normed,
                     &s.mixed,
                     &s.update,
                     &s.qkv,
                     &s.z,
                     &s.b,
                     &s.a,
                     &s.query_gate,
                     &s.key,
                     &s.value,
                     &s.delta.conv,
                     &s.delta.decay,
                     &s.delta.beta,
                     &s.delta.read,
                     &s.attention.query,
                     &s.attention.key,
                     &s.moe.router,
                     &s.moe.routing.indices,
                     &s.moe.routing.weights,
                     &s.moe.routed,
                     &s.moe.shared_gate,
                     &s.moe.gate,
                     &s.moe.up,
                     &s.moe.shared}) {
    *view = view->rows_from(0, rows);
  }
  return s;
}

}  // namespace drama3::backbone
