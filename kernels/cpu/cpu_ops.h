// The fast CPU backend: every op with sixteen SIMD lanes and a thread pool.
#pragma once

#include <memory>
#include <vector>

#include "kernels/cpu/threads.h"
#include "kernels/host/host_ops.h"

namespace drama3 {

// Bits of a result depend neither on threads nor on the instruction set, and a row's bits not on the other
// rows of the call. One source per family in this folder, compiled for each set of kernels/cpu/targets.h.
class CpuOps final : public HostOps {
 public:
  explicit CpuOps(int threads);

  std::string_view name() const override { return "cpu"; }
  Threads& threads() { return threads_; }

  Conv prepare_conv(const HostConv& host, const Conv& sizes) override;
  ConvTranspose prepare_conv_transpose(const HostConv& host, const ConvTranspose& sizes) override;

  void rms_norm(const View& out, const View& in, const Norm& norm) override;
  void add_rms_norm(const View& out, const View& sum, const View& delta, const Norm& norm) override;
  void gated_rms_norm(const View& out, const View& in, const View& z, const Norm& norm) override;
  void layer_norm(const View& out, const View& in, const View& weight, const View& bias, float eps) override;

  void linear(const View& out, const View& in, const Linear& weight) override;
  void project(std::span<const Projection> outs, const View& in) override;
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
  void residual_unit(const View& out, const View& in, const ResidualUnit& unit, const View& tail,
                     const View& scratch0, const View& scratch1) override;

 protected:
  void temper(std::span<Candidate> candidates, const float* logits, float top, float temperature) override;

 private:
  Threads threads_;
  std::vector<float> probabilities_;  // of one row's experts; grows to the largest number seen
};

// The CPU backend on so many threads (0 = one per core), with the instruction set that the environment
// variable DRAMA3_CPU names (scalar, avx2, avx512 or neon; unset = as selected, at first the best one). Error
// when this machine lacks that set.
std::unique_ptr<Ops> make_cpu_ops(int threads);

}  // namespace drama3
