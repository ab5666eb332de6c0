// Ops held back for a moment because the next one may merge with them: a look-up into the norm that reads it,
// a norm into the projection that reads it, a SwiGLU into the projection of its gate and up rows, a residual
// sum into the projection or mixture whose output it adds.
#pragma once

#include <array>

#include "kernels/cuda/linear.cuh"
#include "kernels/cuda/moe.cuh"
#include "lib/ops/ops.h"

namespace drama3 {

// At most one of these kinds waits at a time, and any other op launches it first, so program order holds.
// Merged and single launches give the same bits: they share the device functions.
class Pending {
 public:
  // Launches whatever waits.
  void flush(LaunchQueue& queue);

  // A look-up of the next position's row, a norm of one row, a gated norm of its heads; true when it now
  // waits, false when the caller must launch it.
  bool hold_embed(LaunchQueue& queue, const View& out, const RowSource& next, const EmbedTables& tables,
                  int64_t codebook);
  bool hold_norm(LaunchQueue& queue, const View& out, const View& in, const View& weight, float eps);
  bool hold_gated_norm(LaunchQueue& queue, const View& out, const View& in, const View& z, const Norm& norm);
  // out = silu(gate) * up of one row, if their projection is what waits: it takes the product along and waits
  // on; false when it is not.
  bool merge_swiglu(const View& out, const View& gate, const View& up);
  // A projection of one row `in`, which takes up a waiting norm of it; it waits in turn.
  void hold_gemv(LaunchQueue& queue, GemvArgs args, const View& in);
  // The last launch of a mixture of one row.
  void hold_down(LaunchQueue& queue, const ExpertArgs& args, const View& out);
  // sum += delta, if delta is what waits: launches it with the sum merged; false when it is not.
  bool merge_residual(LaunchQueue& queue, const View& sum, const View& delta);

 private:
  enum class Kind { kNone, kEmbed, kNorms, kGemv, kDown };
  struct EmbedWait {
    View out;
    RowSource next;
    EmbedTables tables;
    int64_t codebook = 0;
  };
  struct NormWait {
    View out, in, weight;
    float eps = 0.0f;
    View z;  // of a gated norm

    NormPart part() const;
  };

  bool norms_feed(const View& in) const;
  void launch_norms(LaunchQueue& queue);
  RowGather gather() const;

  Kind kind_ = Kind::kNone;
  EmbedWait embed_;
  bool looked_up_ = false;  // the first waiting norm reads embed_.out
  std::array<NormWait, 2> norms_;
  int norm_count_ = 0;
  GemvArgs gemv_;
  DType gemv_type_ = DType::kBF16;
  ExpertArgs down_;
  View produced_;  // out of the waiting gemv or mixture
};

}  // namespace drama3
