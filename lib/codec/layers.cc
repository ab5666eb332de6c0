// The windowed transformer and the ConvNeXt block as op calls.
#include "lib/codec/layers.h"

namespace drama3::codec {
namespace {

// x = x + attention_gain * out(attend(norm(x))); x = x + ffn_gain * down(silu(gate n) * up n), n = norm(x).
void transform_layer(Ops& ops, const View& x, const TransformerLayer& layer, const Transformer& part,
                     const TransformerState& state, const KvCache& cache, const TransformerScratch& scratch) {
  const int64_t inner = part.attend.heads * part.attend.head_dim;
  ops.rms_norm(scratch.normed, x, layer.attention_norm);
  ops.linear(scratch.qkv, scratch.normed, layer.qkv);
  const AttentionMix mix{.query = scratch.qkv.cols_from(0, inner),
                         .key = scratch.qkv.cols_from(inner, inner),
                         .value = scratch.qkv.cols_from(2 * inner, inner),
                         .query_layout = {.heads = part.attend.heads,
                                          .head_dim = part.attend.head_dim,
                                          .stride = part.attend.head_dim},
                         .query_norm = {},
                         .key_norm = {},
                         .rope = state.rope,
                         .dims = part.attend,
                         .gate = {},
                         .gate_layout = {}};
  ops.attention_mix(scratch.attended, mix, cache, state.position, scratch.attention);
  ops.linear(scratch.update, scratch.attended, layer.out);
  ops.scaled_add(x, x, scratch.update, layer.attention_gain);

  ops.rms_norm(scratch.normed, x, layer.ffn_norm);
  const Projection projections[] = {{scratch.gate, &layer.gate}, {scratch.up, &layer.up}};
  ops.project(projections, scratch.normed);
  ops.swiglu(scratch.gate, scratch.gate, scratch.up);
  ops.linear(scratch.update, scratch.gate, layer.down);
  ops.scaled_add(x, x, scratch.update, layer.ffn_gain);
}

}  // namespace

void transform(Ops& ops, const View& rows, const Transformer& part, const TransformerState& state,
               const View& flat) {
  const TransformerScratch scratch = cut(flat, part, rows.rows());
  const View x = part.input ? scratch.x : rows;
  if (part.input) ops.linear(x, rows, *part.input);
  for (size_t i = 0; i < part.layers.size(); ++i) {
    transform_layer(ops, x, part.layers[i], part, state, state.layers[i], scratch);
  }
  ops.rms_norm(x, x, part.norm);
  if (part.output) ops.linear(rows, x, *part.output);
  ops.advance(state.position, rows.rows());
}

void conv_next(Ops& ops, const View& rows, const ConvNext& part, const View& tail, const View& spare,
               const View& wide) {
  const View normed = shaped(spare, rows.rows(), rows.cols());
  const View inner = shaped(wide, rows.rows(), part.up.out);
  ops.conv(normed, rows, part.depthwise, tail);
  ops.layer_norm(normed, normed, part.norm_weight, part.norm_bias, 1e-6f);
  ops.linear(inner, normed, part.up);
  ops.gelu(inner, inner);
  ops.linear(normed, inner, part.down);
  ops.scaled_add(rows, rows, normed, part.gain);
}

}  // namespace drama3::codec
