// The ops of backbone and tower as launches: fused for one row, composed for many.
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/delta.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/tables.cuh"
#include "lib/base/check.h"

namespace drama3 {
namespace {

const PackedMatrix& matrix_of(const Linear& weight) {
  INVARIANT(weight.packed != nullptr, "a linear weight that this backend did not prepare");
  return *static_cast<const PackedMatrix*>(weight.packed.get());
}

const PackedExperts& experts_of(const MoeMix& mix) {
  INVARIANT(mix.experts.packed != nullptr, "experts that this backend did not prepare");
  return *static_cast<const PackedExperts*>(mix.experts.packed.get());
}

Rows<const bf16> bf16_rows(const View& view) {
  INVARIANT(view.type == DType::kBF16 && view.place == Place::kDevice, "rows of ", dtype_name(view.type));
  return {static_cast<const bf16*>(view.data), view.row_stride};
}

Rows<bf16> bf16_out(const View& view) {
  INVARIANT(view.type == DType::kBF16 && view.place == Place::kDevice, "rows of ", dtype_name(view.type));
  return {static_cast<bf16*>(view.data), view.row_stride};
}

const float* floats(const View& view) {
  INVARIANT(view.empty() || view.type == DType::kF32, "F32 expected, got ", dtype_name(view.type));
  return static_cast<const float*>(view.data);
}

Rows<float> float_rows(const View& view) { return {const_cast<float*>(floats(view)), view.row_stride}; }

HeadTurn turn_of(const Norm& norm, const Rope& rope) {
  return {.weight = floats(norm.weight),
          .eps = norm.eps,
          .cos = floats(rope.cos),
          .sin = floats(rope.sin),
          .rotary = static_cast<int>(rope.rotary),
          .interleaved = rope.interleaved};
}

AttendArgs attend_args(const View& out, const KvCache& cache, const View& position, const AttendDims& dims) {
  INVARIANT(cache.keys.row_stride == dims.kv_heads * dims.head_dim, "a cache with gaps");
  return {.keys = cache.keys.data,
          .values = cache.values.data,
          .slots = static_cast<int>(cache.keys.rows()),
          .position = static_cast<const int*>(position.data),
          .rows = static_cast<int>(out.rows()),
          .heads = static_cast<int>(dims.heads),
          .kv_heads = static_cast<int>(dims.kv_heads),
          .window = static_cast<int>(dims.window),
          .scale = dims.scale,
          .out = out.data,
          .out_stride = out.row_stride};
}

DeltaArgs delta_args(const DeltaDims& dims, int64_t rows) {
  INVARIANT(
      dims.key_dim == kDeltaWidth && dims.value_dim == kDeltaWidth && dims.value_heads % dims.key_heads == 0,
      "delta heads of ", dims.key_dim, " and ", dims.value_dim);
  DeltaArgs args;
  args.rows = static_cast<int>(rows);
  args.key_heads = static_cast<int>(dims.key_heads);
  args.value_heads = static_cast<int>(dims.value_heads);
  args.channels = static_cast<int>(dims.channels());
  args.taps = static_cast<int>(dims.conv_taps);
  return args;
}

RouteArgs route_args(const Routing& out, const View& logits, const MoeMix& mix) {
  INVARIANT(out.indices.row_stride == out.weights.row_stride, "routing rows of two strides");
  return {.logits = {floats(logits), logits.row_stride},
          .indices = static_cast<int*>(out.indices.data),
          .weights = const_cast<float*>(floats(out.weights)),
          .stride = out.indices.row_stride,
          .rows = static_cast<int>(logits.rows()),
          .experts = static_cast<int>(logits.cols()),
          .top_k = static_cast<int>(mix.top_k),
          .renormalize = mix.renormalize};
}

// Pieces of expert_ffn's workspace, each 256-byte aligned.
struct ExpertSpace {
  int64_t codes, scales, offsets, pairs, activation, activation_codes, activation_scales, weighted, bytes;
};

ExpertSpace expert_space(const MoeMix& mix, int64_t rows) {
  const int64_t hidden = mix.experts.hidden, ffn = mix.experts.ffn, pairs = rows * mix.top_k;
  const int64_t experts = experts_of(mix).experts;
  int64_t at = 0;
  const auto take = [&](int64_t bytes) {
    const int64_t begin = at;
    at += (bytes + 255) / 256 * 256;
    return begin;
  };
  ExpertSpace space{};
  space.codes = take(rows * hidden);
  space.scales = take(rows * (hidden / kGroup) * 4);
  space.offsets = take((experts + 1) * 4);
  space.pairs = take(pairs * 4);
  space.activation = take(pairs * ffn * 4);
  space.activation_codes = take(pairs * ffn);
  space.activation_scales = take(pairs * (ffn / kGroup) * 4);
  space.weighted = take(pairs * hidden * 2);
  space.bytes = at;
  return space;
}

void require_quantized(const MoeReplay& replay) {
  if (replay.quantize_activations) return;
  fail("experts on CUDA: expected quantised activations, got a replay without; use the ref or cpu device");
}

}  // namespace

void CudaOps::rms_norm(const View& out, const View& in, const Norm& norm) {
  if (options_.fuse && out.rows() == 1 && out.type == DType::kBF16) {
    if (pending_.hold_norm(queue_, out, in, norm.weight, norm.eps)) return;
  }
  rms_norm_rows(queue(), out, in, norm.weight, norm.eps);
}

void CudaOps::add_rms_norm(const View& out, const View& sum, const View& delta, const Norm& norm) {
  if (!pending_.merge_residual(queue_, sum, delta)) add_rows(queue(), sum, sum, delta);
  rms_norm(out, sum, norm);
}

void CudaOps::gated_rms_norm(const View& out, const View& in, const View& z, const Norm& norm) {
  if (options_.fuse && pending_.hold_gated_norm(queue_, out, in, z, norm)) return;
  gated_norm(queue(), out, in, z, norm.weight, norm.eps);
}

GemmArgs CudaOps::gemm_args(const View& out, const PackedMatrix& matrix) const {
  return {.weight = matrix.data,
          .bias = matrix.bias,
          .n = matrix.n,
          .steps = matrix.steps,
          .bias_period = matrix.n,
          .out = out.data,
          .out_stride = out.row_stride,
          .type = static_cast<int>(out.type),
          .rows = static_cast<int>(out.rows()),
          .in = matrix.k,
          .in_padded = matrix.steps * kStepK};
}

void CudaOps::linear(const View& out, const View& in, const Linear& weight) {
  const Projection one[] = {{out, &weight}};
  project(one, in);
}

void CudaOps::project(std::span<const Projection> outs, const View& in) {
  if (in.rows() == 1) return one_row_project(outs, in);
  for (const Projection& projection : outs) {
    const PackedMatrix& matrix = matrix_of(*projection.weight);
    INVARIANT(matrix.type == in.type && matrix.k == in.cols() && matrix.n == projection.out.cols(),
              projection.out.shape.text(), " from ", in.shape.text(), " by ", matrix.n, " x ", matrix.k);
    GemmArgs args = gemm_args(projection.out, matrix);
    args.x = in.data;
    args.x_stride = in.row_stride;
    gemm(queue(), in.type, args);
  }
}

void CudaOps::one_row_project(std::span<const Projection> outs, const View& in) {
  INVARIANT(static_cast<int>(outs.size()) <= kMaxSegments, outs.size(), " projections");
  if (weights_moving_) queue();
  GemvArgs args;
  int tile = 0;
  for (const Projection& projection : outs) {
    const PackedMatrix& matrix = matrix_of(*projection.weight);
    INVARIANT(matrix.type == in.type && matrix.k == in.cols() && matrix.n == projection.out.cols(),
              projection.out.shape.text(), " from ", in.shape.text(), " by ", matrix.n, " x ", matrix.k);
    args.segments[args.segment_count++] = {.weight = matrix.data,
                                           .bias = matrix.bias,
                                           .out = projection.out.data,
                                           .n = matrix.n,
                                           .first_tile = tile,
                                           .type = static_cast<int>(projection.out.type)};
    tile += matrix.tiles();
    args.k = matrix.k;
    args.steps = matrix.steps;
  }
  args.x = in.data;
  if (options_.fuse && in.type == DType::kBF16) return pending_.hold_gemv(queue_, args, in);
  gemv(queue(), in.type, args);
}

void CudaOps::add(const View& out, const View& a, const View& b) { add_rows(queue(), out, a, b); }

void CudaOps::swiglu(const View& out, const View& gate, const View& up) {
  if (pending_.merge_swiglu(out, gate, up)) return;
  swiglu_rows(queue(), out, gate, up);
}

void CudaOps::conv_silu(const View& out, const View& in, const View& weight, const View& tail) {
  DeltaArgs args;
  args.qkv = bf16_rows(in);
  args.out = bf16_out(out);
  args.conv = floats(weight);
  args.tail = bf16_out(tail);
  args.rows = static_cast<int>(in.rows());
  args.taps = static_cast<int>(weight.rows());
  args.channels = static_cast<int>(in.cols());
  delta_conv(queue(), args);
}

void CudaOps::delta_gates(const View& decay, const View& beta, const DeltaMix& mix) {
  DeltaArgs args = delta_args(mix.dims, decay.rows());
  args.a = bf16_rows(mix.a);
  args.b = bf16_rows(mix.b);
  args.a_log = floats(mix.a_log);
  args.dt_bias = floats(mix.dt_bias);
  args.decay = float_rows(decay);
  args.beta = float_rows(beta);
  delta_gate(queue(), args);
}

void CudaOps::delta_rule(const View& out, const View& qkv, const View& decay, const View& beta,
                         const View& memory, const DeltaDims& dims) {
  DeltaArgs args = delta_args(dims, qkv.rows());
  args.qkv = bf16_rows(qkv);
  args.out = bf16_out(out);
  args.decay = float_rows(decay);
  args.beta = float_rows(beta);
  args.memory = const_cast<float*>(floats(memory));
  delta_recur(queue(), args);
}

void CudaOps::delta_mix(const View& out, const DeltaMix& mix, const DeltaState& state,
                        const DeltaScratch& scratch) {
  const int64_t ratio = mix.dims.value_heads / mix.dims.key_heads;
  if (!options_.fuse || out.rows() != 1 || ratio > 8 || (ratio > 1 && !queue_.clusters)) {
    return Ops::delta_mix(out, mix, state, scratch);
  }
  DeltaArgs args = delta_args(mix.dims, 1);
  args.qkv = bf16_rows(mix.qkv);
  args.a = bf16_rows(mix.a);
  args.b = bf16_rows(mix.b);
  args.conv = floats(mix.conv);
  args.a_log = floats(mix.a_log);
  args.dt_bias = floats(mix.dt_bias);
  args.tail = bf16_out(state.tail);
  args.memory = const_cast<float*>(floats(state.memory));
  args.out = bf16_out(scratch.read);
  delta_fused(queue(), args);
  gated_rms_norm(out, scratch.read, mix.z, mix.norm);
}

void CudaOps::head_norm_rope(const View& out, const View& in, const HeadLayout& layout, const Norm& norm,
                             const Rope& rope, const View& position) {
  turn_heads(queue(), in.type, static_cast<int>(layout.head_dim),
             {.out = out.data,
              .out_stride = out.row_stride,
              .in = in.data,
              .in_stride = in.row_stride,
              .heads = static_cast<int>(layout.heads),
              .head_stride = static_cast<int>(layout.stride),
              .head_offset = static_cast<int>(layout.offset),
              .turn = turn_of(norm, rope),
              .position = static_cast<const int*>(position.data),
              .rows = static_cast<int>(out.rows())});
}

void CudaOps::append_kv(const KvCache& cache, const View& key, const View& value, const View& position) {
  append_rows(queue(), cache, key, value, position);
}

void CudaOps::attend(const View& out, const View& query, const KvCache& cache, const View& position,
                     const AttendDims& dims) {
  AttendArgs args = attend_args(out, cache, position, dims);
  args.query = query.data;
  args.query_stride = query.row_stride;
  args.head_stride = static_cast<int>(dims.head_dim);
  args.partial = static_cast<float*>(partial_.get());
  args.arrivals = static_cast<int*>(arrivals_.get());
  const int head_dim = static_cast<int>(dims.head_dim);
  if (out.rows() == 1) return attend_split(queue(), query.type, head_dim, args, /*fused=*/false);
  attend_rows(queue(), query.type, head_dim, args);
}

void CudaOps::sigmoid_gate(const View& out, const View& gate, const HeadLayout& layout) {
  gate_rows(queue(), out, gate,
            {.width = static_cast<int>(layout.head_dim),
             .stride = static_cast<int>(layout.stride),
             .offset = static_cast<int>(layout.offset)});
}

void CudaOps::attention_mix(const View& out, const AttentionMix& mix, const KvCache& cache,
                            const View& position, const AttentionScratch& scratch) {
  if (!options_.fuse || out.rows() != 1) return Ops::attention_mix(out, mix, cache, position, scratch);
  AttendArgs args = attend_args(out, cache, position, mix.dims);
  args.query = mix.query.data;
  args.query_stride = mix.query.row_stride;
  args.head_stride = static_cast<int>(mix.query_layout.stride);
  args.head_offset = static_cast<int>(mix.query_layout.offset);
  args.query_turn = turn_of(mix.query_norm, mix.rope);
  args.key_turn = turn_of(mix.key_norm, mix.rope);
  args.key = mix.key.data;
  args.value = mix.value.data;
  args.gate = mix.gate.data;
  args.gate_stride = static_cast<int>(mix.gate_layout.stride);
  args.gate_offset = static_cast<int>(mix.gate_layout.offset);
  args.partial = static_cast<float*>(partial_.get());
  args.arrivals = static_cast<int*>(arrivals_.get());
  attend_split(queue(), mix.query.type, static_cast<int>(mix.dims.head_dim), args, /*fused=*/true);
}

void CudaOps::quantize_rows(const View& codes, const View& scales, const View& in) {
  quantize_groups(queue(), {.in = in.data,
                            .in_stride = in.row_stride,
                            .in_float = in.type == DType::kF32,
                            .codes = {static_cast<uint8_t*>(codes.data), codes.row_stride},
                            .scales = float_rows(scales),
                            .rows = static_cast<int>(in.rows()),
                            .n = static_cast<int>(in.cols())});
}

void CudaOps::route(const Routing& out, const View& logits, const MoeMix& mix, const MoeReplay& replay) {
  RouteArgs args = route_args(out, logits, mix);
  args.forced = static_cast<const int*>(replay.forced_indices.data);
  args.forced_stride = replay.forced_indices.row_stride;
  route_rows(queue(), args);
}

int64_t CudaOps::expert_workspace(const MoeMix& mix, int64_t rows) const {
  return expert_space(mix, rows).bytes;
}

void CudaOps::expert_ffn(const View& out, const View& in, const Routing& routing, const MoeMix& mix,
                         const MoeReplay& replay, const View& workspace) {
  require_quantized(replay);
  const int64_t rows = in.rows();
  const ExpertSpace space = expert_space(mix, rows);
  INVARIANT(space.bytes <= static_cast<int64_t>(workspace.bytes()), "workspace of ", workspace.bytes(),
            " for ", space.bytes);
  auto* base = static_cast<std::byte*>(workspace.data);
  const int hidden = static_cast<int>(mix.experts.hidden), ffn = static_cast<int>(mix.experts.ffn);
  const int pairs = static_cast<int>(rows * mix.top_k);
  LaunchQueue& work = queue();
  ExpertArgs args;
  args.experts = experts_of(mix);
  args.route = {.indices = static_cast<int*>(routing.indices.data),
                .stride = routing.indices.row_stride,
                .rows = static_cast<int>(rows),
                .experts = args.experts.experts,
                .top_k = static_cast<int>(mix.top_k)};
  args.list = {reinterpret_cast<int*>(base + space.offsets), reinterpret_cast<int*>(base + space.pairs)};
  list_pairs(work, args.list, args.route);

  auto* codes = reinterpret_cast<uint8_t*>(base + space.codes);
  auto* scales = reinterpret_cast<float*>(base + space.scales);
  quantize_groups(work, {.in = in.data,
                         .in_stride = in.row_stride,
                         .codes = {codes, hidden},
                         .scales = {scales, hidden / kGroup},
                         .rows = static_cast<int>(rows),
                         .n = hidden});
  args.codes = {codes, hidden};
  args.scales = {scales, hidden / kGroup};
  args.activation = reinterpret_cast<float*>(base + space.activation);
  experts_gate_up_rows(work, args);

  auto* activation_codes = reinterpret_cast<uint8_t*>(base + space.activation_codes);
  auto* activation_scales = reinterpret_cast<float*>(base + space.activation_scales);
  quantize_groups(work, {.in = args.activation,
                         .in_stride = ffn,
                         .in_float = true,
                         .codes = {activation_codes, ffn},
                         .scales = {activation_scales, ffn / kGroup},
                         .rows = pairs,
                         .n = ffn});
  args.codes = {activation_codes, ffn};
  args.scales = {activation_scales, ffn / kGroup};
  args.weights = {floats(routing.weights), routing.weights.row_stride};
  args.weighted = reinterpret_cast<bf16*>(base + space.weighted);
  experts_down_rows(work, args);
  combine_slots(work, bf16_out(out), args.weighted, static_cast<int>(rows), static_cast<int>(mix.top_k),
                hidden);
}

void CudaOps::combine_shared(const View& out, const View& routed, const View& shared, const View& gate) {
  combine_shared_rows(queue(), out, routed, shared, gate);
}

void CudaOps::moe(const View& out, const View& in, const MoeMix& mix, const MoeReplay& replay,
                  const MoeScratch& scratch) {
  require_quantized(replay);
  if (options_.fuse && in.rows() == 1 && replay.forced_indices.empty())
    return one_row_moe(out, in, mix, scratch);
  Ops::moe(out, in, mix, replay, scratch);
}

void CudaOps::one_row_moe(const View& out, const View& in, const MoeMix& mix, const MoeScratch& scratch) {
  const Projection projections[] = {{scratch.router, &mix.router},
                                    {scratch.shared_gate, &mix.shared_gate},
                                    {scratch.gate, &mix.shared_gate_proj},
                                    {scratch.up, &mix.shared_up_proj}};
  one_row_project(projections, in);
  const ExpertSpace space = expert_space(mix, 1);
  const PackedMatrix& shared_down = matrix_of(mix.shared_down_proj);
  ExpertArgs args;
  args.experts = experts_of(mix);
  args.route = route_args(scratch.routing, scratch.router, mix);
  args.in = bf16_rows(in).data;
  args.activation =
      reinterpret_cast<float*>(static_cast<std::byte*>(scratch.experts.data) + space.activation);
  args.shared_down = shared_down.data;
  args.shared_steps = shared_down.steps;
  args.shared_ffn = shared_down.k;
  args.shared_gate_row = bf16_rows(scratch.gate).data;
  args.shared_up_row = bf16_rows(scratch.up).data;
  args.shared_gate = bf16_rows(scratch.shared_gate).data;
  args.out = bf16_out(out).data;
  args.routed = static_cast<int*>(arrivals_.get()) + kRoutedFlag;
  experts_gate_up_row(queue(), args);
  pending_.hold_down(queue_, args, out);
}

}  // namespace drama3
