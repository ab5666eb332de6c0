// The definition: every op in plain scalar code, FP32 values and FP64 sums, one row and one sum at a time.
#pragma once

#include "kernels/host/host_ops.h"

namespace drama3 {

// One file per family in this folder; sums run in ascending order of the summed index.
class RefOps final : public HostOps {
 public:
  std::string_view name() const override { return "ref"; }

  void rms_norm(const View& out, const View& in, const Norm& norm) override;
  void gated_rms_norm(const View& out, const View& in, const View& z, const Norm& norm) override;
  void layer_norm(const View& out, const View& in, const View& weight, const View& bias, float eps) override;

  void linear(const View& out, const View& in, const Linear& weight) override;
  void add(const View& out, const View& a, const View& b) override;
  void scaled_add(const View& out, const View& x, const View& y, const View& gain) override;
  void swiglu(const View& out, const View& gate, const View& up) override;
  void gelu(const View& out, const View& in) override;
  void tanh(const View& out, const View& in) override;

  void conv_silu(const View& out, const View& in, const View& weight, const View& tail) override;
  void delta_gates(const View& decay, const View& beta, const DeltaMix& mix) override;
  void delta_rule(const View& out, const View& qkv, const View& decay, const View& beta, const View& memory,
                  const DeltaDims& dims) override;

  void head_norm_rope(const View& out, const View& in, const HeadLayout& layout, const Norm& norm,
                      const Rope& rope, const View& position) override;
  void attend(const View& out, const View& query, const KvCache& cache, const View& position,
              const AttendDims& dims) override;
  void sigmoid_gate(const View& out, const View& gate, const HeadLayout& layout) override;

  void quantize_rows(const View& codes, const View& scales, const View& in) override;
  void route(const Routing& out, const View& logits, const MoeMix& mix, const MoeReplay& replay) override;
  int64_t expert_workspace(const MoeMix& mix, int64_t rows) const override;
  void expert_ffn(const View& out, const View& in, const Routing& routing, const MoeMix& mix,
                  const MoeReplay& replay, const View& workspace) override;
  void combine_shared(const View& out, const View& routed, const View& shared, const View& gate) override;

  void conv(const View& out, const View& in, const Conv& conv, const View& tail) override;
  void conv_transpose(const View& out, const View& in, const ConvTranspose& conv, const View& tail) override;
  void snake(const View& out, const View& in, const Snake& snake) override;

 protected:
  void temper(std::span<Candidate> candidates, const float* logits, float top, float temperature) override;
};

}  // namespace drama3
