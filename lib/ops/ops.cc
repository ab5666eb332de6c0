// The fused ops written as compositions of smaller ones: what a backend's own fusion must equal.
#include "lib/ops/ops.h"

namespace drama3 {

void Ops::add_rms_norm(const View& out, const View& sum, const View& delta, const Norm& norm) {
  add(sum, sum, delta);
  rms_norm(out, sum, norm);
}

void Ops::project(std::span<const Projection> outs, const View& in) {
  for (const Projection& projection : outs) linear(projection.out, in, *projection.weight);
}

void Ops::delta_mix(const View& out, const DeltaMix& mix, const DeltaState& state,
                    const DeltaScratch& scratch) {
  conv_silu(scratch.conv, mix.qkv, mix.conv, state.tail);
  delta_gates(scratch.decay, scratch.beta, mix);
  delta_rule(scratch.read, scratch.conv, scratch.decay, scratch.beta, state.memory, mix.dims);
  gated_rms_norm(out, scratch.read, mix.z, mix.norm);
}

void Ops::attention_mix(const View& out, const AttentionMix& mix, const KvCache& cache, const View& position,
                        const AttentionScratch& scratch) {
  const AttendDims& dims = mix.dims;
  const HeadLayout keys{.heads = dims.kv_heads, .head_dim = dims.head_dim, .stride = dims.head_dim};
  head_norm_rope(scratch.query, mix.query, mix.query_layout, mix.query_norm, mix.rope, position);
  head_norm_rope(scratch.key, mix.key, keys, mix.key_norm, mix.rope, position);
  append_kv(cache, scratch.key, mix.value, position);
  attend(out, scratch.query, cache, position, dims);
  if (!mix.gate.empty()) sigmoid_gate(out, mix.gate, mix.gate_layout);
}

void Ops::moe(const View& out, const View& in, const MoeMix& mix, const MoeReplay& replay,
              const MoeScratch& scratch) {
  linear(scratch.router, in, mix.router);
  route(scratch.routing, scratch.router, mix, replay);
  expert_ffn(scratch.routed, in, scratch.routing, mix, replay, scratch.experts);
  const Projection shared[] = {{scratch.shared_gate, &mix.shared_gate},
                               {scratch.gate, &mix.shared_gate_proj},
                               {scratch.up, &mix.shared_up_proj}};
  project(shared, in);
  swiglu(scratch.gate, scratch.gate, scratch.up);
  linear(scratch.shared, scratch.gate, mix.shared_down_proj);
  combine_shared(out, scratch.routed, scratch.shared, scratch.shared_gate);
}

void Ops::residual_unit(const View& out, const View& in, const ResidualUnit& unit, const View& tail,
                        const View& scratch0, const View& scratch1) {
  snake(scratch0, in, unit.snake0);
  conv(scratch1, scratch0, unit.conv0, tail);
  snake(scratch1, scratch1, unit.snake1);
  conv(scratch0, scratch1, unit.conv1, View{});
  add(out, in, scratch0);
}

}  // namespace drama3
