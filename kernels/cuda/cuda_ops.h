// The CUDA backend: every op as launches on one stream, steps recorded as graphs, a second stream on request.
#pragma once

#include <array>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/common/launch.cuh"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/linear.cuh"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/moe.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/pending.h"
#include "kernels/cuda/staging.h"

namespace drama3 {

// Activations BF16, codec rows F16, state and sums F32. One thread at a time may call it, except that any
// number may call prepare_*. Weights live until it is destroyed.
class CudaOps final : public Ops {
 public:
  // Which of two queues of a device gets free multiprocessors first.
  enum class Priority { kFirst, kSecond };

  explicit CudaOps(const CudaOptions& options, Priority priority = Priority::kFirst);
  ~CudaOps() override;
  CudaOps(const CudaOps&) = delete;
  CudaOps& operator=(const CudaOps&) = delete;

  std::string_view name() const override { return "cuda"; }
  DType activation_type() const override { return DType::kBF16; }
  DType codec_type() const override { return DType::kF16; }
  int64_t max_rows() const override { return 256; }
  CudaCounters counters() const;

  Buffer allocate(DType type, const Shape& shape) override;
  void upload(const View& out, const View& host) override;
  void download(const View& host, const View& in) override;
  void send(int slot, const View& in) override;
  void receive(const View& host, int slot) override;
  bool runs_ahead() const override { return true; }
  Ops& beside() override;
  void copy(const View& out, const View& in) override;
  void fill(const View& out, int byte) override;
  void synchronize() override;
  int64_t free_bytes() const override;
  bool weights_in_place() const override { return false; }
  int64_t loading_bytes() const override { return StagingRing::device_bytes(); }
  void run_step(int key, const std::function<void()>& step) override;

  View prepare_vector(const View& stored, float add) override;
  View prepare_table(const View& stored) override;
  Linear prepare_linear(const StoredMatrix& stored, const View& bias) override;
  Linear prepare_head(const View& stored, int64_t first, int64_t count, int64_t last) override;
  Experts prepare_experts(std::span<const Expert> experts) override;
  Conv prepare_conv(const HostConv& host, const Conv& sizes) override;
  ConvTranspose prepare_conv_transpose(const HostConv& host, const ConvTranspose& sizes) override;

  void embed(const View& out, const RowSource& rows, const EmbedTables& tables) override;
  void embed_next(const View& out, const RowSource& next, const EmbedTables& tables,
                  int64_t codebook) override;

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
  void delta_mix(const View& out, const DeltaMix& mix, const DeltaState& state,
                 const DeltaScratch& scratch) override;

  void head_norm_rope(const View& out, const View& in, const HeadLayout& layout, const Norm& norm,
                      const Rope& rope, const View& position) override;
  void append_kv(const KvCache& cache, const View& key, const View& value, const View& position) override;
  void attend(const View& out, const View& query, const KvCache& cache, const View& position,
              const AttendDims& dims) override;
  void sigmoid_gate(const View& out, const View& gate, const HeadLayout& layout) override;
  void attention_mix(const View& out, const AttentionMix& mix, const KvCache& cache, const View& position,
                     const AttentionScratch& scratch) override;
  void advance(const View& position, int64_t rows) override;

  void quantize_rows(const View& codes, const View& scales, const View& in) override;
  void route(const Routing& out, const View& logits, const MoeMix& mix, const MoeReplay& replay) override;
  int64_t expert_workspace(const MoeMix& mix, int64_t rows) const override;
  void expert_ffn(const View& out, const View& in, const Routing& routing, const MoeMix& mix,
                  const MoeReplay& replay, const View& workspace) override;
  void combine_shared(const View& out, const View& routed, const View& shared, const View& gate) override;
  void moe(const View& out, const View& in, const MoeMix& mix, const MoeReplay& replay,
           const MoeScratch& scratch) override;

  void pick(const View& code, const View& logits, const PickState& state, int64_t codebook) override;
  void record_codes(const View& history, const View& codes, const View& frame) override;

  void lookup(const View& out, const View& codes, const View& table) override;
  void conv(const View& out, const View& in, const Conv& conv, const View& tail) override;
  void conv_transpose(const View& out, const View& in, const ConvTranspose& conv, const View& tail) override;
  void snake(const View& out, const View& in, const Snake& snake) override;
  void nearest(const View& codes, const View& in, const View& table) override;

 private:
  static constexpr int kRoutedFlag = kMaxHeads;  // the mixture's two words among the counters
  struct Step {
    bool ran = false;
    cudaGraphExec_t graph = nullptr;
    int64_t launches = 0;
  };

  // The queue with nothing held back: every op that does not itself take part in a merge starts here.
  LaunchQueue& queue();
  // Memory for weights, carved from large pieces that live as long as the backend.
  void* weight_memory(int64_t bytes);
  // Zeroed memory of a matrix packed as [n, steps of columns].
  std::shared_ptr<PackedMatrix> packed_matrix(int64_t n, int64_t k, int steps, DType type);
  // Packs the source in pieces of whole rows of row_bytes; such a row of the source is one of the target's
  // rows, or of its channels.
  void pack_pieces(const PackTarget& target, const PackSource& source, int64_t row_bytes, bool channels);
  void pack_rows(const PackedMatrix& matrix, int64_t first, const View& stored);
  const float* packed_bias(const View& bias);
  GemmArgs gemm_args(const View& out, const PackedMatrix& matrix) const;
  void record(Step& step, const std::function<void()>& calls);
  void one_row_project(std::span<const Projection> outs, const View& in);
  void one_row_moe(const View& out, const View& in, const MoeMix& mix, const MoeScratch& scratch);

  CudaOptions options_;
  LaunchQueue queue_;
  int64_t graph_launches_ = 0;  // kernels launched by replays
  std::mutex weight_mutex_;
  std::list<std::shared_ptr<void>> weights_;
  std::byte* weight_at_ = nullptr;
  int64_t weight_left_ = 0;
  bool weights_moving_ = false;  // packing may still run
  std::unique_ptr<StagingRing> staging_;
  std::shared_ptr<void> mail_;  // pinned: [kMailSlots, kMailBytes]
  std::array<cudaEvent_t, kMailSlots> mailed_{};
  std::shared_ptr<void> bounce_;    // pinned memory of uploads and downloads
  std::shared_ptr<void> partial_;   // partial attention of one row
  std::shared_ptr<void> arrivals_;  // counters: of its blocks by heads, then the mixture's flag
  std::map<int, Step> steps_;
  Pending pending_;
  std::unique_ptr<CudaOps> beside_;
};

}  // namespace drama3
