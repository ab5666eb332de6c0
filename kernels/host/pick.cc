// A draw of a code on a host backend: checks and argmax, then the rule of lib/ops/sampling.h.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/host/host_ops.h"
#include "lib/base/philox.h"

namespace drama3 {

void HostOps::pick(const View& code, const View& logits, const PickState& state, int64_t codebook) {
  Sampling sampling;
  std::memcpy(&sampling, state.sampling.data, sizeof sampling);
  const int32_t frame = *state.frame.row<int32_t>(0);
  const float* logit = logits.row<float>(0);
  const int64_t count = logits.cols();
  int32_t* out = code.row<int32_t>(0);
  *out = 0;
  if (!std::all_of(logit, logit + count, [](float value) { return std::isfinite(value); })) {
    int32_t* failure = state.failure.row<int32_t>(0);
    if (*failure == 0) *failure = pick_failure(frame, codebook);
    return;
  }
  const float* top = std::max_element(logit, logit + count);
  if (sampling.temperature == 0.0f) {
    *out = static_cast<int32_t>(top - logit);
    return;
  }
  if (candidates_.size() < static_cast<size_t>(count)) candidates_.resize(static_cast<size_t>(count));
  const std::span<Candidate> candidates(candidates_.data(), static_cast<size_t>(count));
  temper(candidates, logit, *top, sampling.temperature);
  const int64_t kept = keep_top(candidates, sampling);
  const float uniform =
      draw_uniform(sampling.seed, static_cast<uint32_t>(frame), static_cast<uint32_t>(codebook));
  *out = draw(candidates.first(static_cast<size_t>(kept)), uniform);
}

}  // namespace drama3
