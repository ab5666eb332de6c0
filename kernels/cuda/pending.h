// Ops held back for a moment because the next one may merge with them: a norm or SwiGLU into the projection
// that reads it, a residual sum into the projection or mixture whose output it adds.
#pragma once

#include <array>

#include "kernels/cuda/linear.cuh"
#include "kernels/cuda/moe.cuh"
#include "lib/tensor/view.h"

namespace drama3 {

// At most one of three kinds waits at a time, and any other op launches it first, so program order holds.
// Merged and single launches give the same bits: they share the device functions.
class Pending {
 public:
  // Launches whatever waits.
  void flush(LaunchQueue& queue);

  // A norm of one row; true when it now waits, false when the caller must launch it.
  bool hold_norm(LaunchQueue& queue, const View& out, const View& in, const View& weight, float eps);
  // silu(gate) * up of one row; the same.
  bool hold_swiglu(LaunchQueue& queue, const View& out, const View& gate, const View& up);
  // A projection of one row `in`, which takes up a waiting norm or SwiGLU of it; it waits in turn.
  void hold_gemv(LaunchQueue& queue, GemvArgs args, const View& in);
  // The last launch of a mixture of one row.
  void hold_down(LaunchQueue& queue, const ExpertArgs& args, const View& out);
  // sum += delta, if delta is what waits: launches it with the sum merged; false when it is not.
  bool merge_residual(LaunchQueue& queue, const View& sum, const View& delta);

 private:
  enum class Kind { kNone, kNorms, kSwiglu, kGemv, kDown };
  struct NormWait {
    View out, in, weight;
    float eps = 0.0f;
  };

  bool norms_feed(const View& in) const;

  Kind kind_ = Kind::kNone;
  std::array<NormWait, 2> norms_;
  int norm_count_ = 0;
  View swiglu_out_, gate_, up_;
  GemvArgs gemv_;
  DType gemv_type_ = DType::kBF16;
  ExpertArgs down_;
  View produced_;  // out of the waiting gemv or mixture
};

}  // namespace drama3
