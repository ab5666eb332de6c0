// Reference mixture of experts: FP8 rounding of rows, routing, and the experts' feed-forward blocks.
#include <algorithm>
#include <cmath>

#include "kernels/ref/dot.h"
#include "kernels/ref/ref_ops.h"
#include "lib/base/scalars.h"

namespace drama3 {
namespace {

int64_t groups_of(int64_t count) { return (count + kSumBlock - 1) / kSumBlock; }

// FP8 codes of one row and the scale of each group of 128.
void quantize_row(uint8_t* codes, float* scales, const float* x, int64_t count) {
  for (int64_t begin = 0; begin < count; begin += kSumBlock) {
    const int64_t end = std::min(begin + kSumBlock, count);
    float top = 1e-10f;
    for (int64_t i = begin; i < end; ++i) top = std::max(top, std::fabs(x[i]));
    const float scale = top / 448.0f;
    scales[begin / kSumBlock] = scale;
    for (int64_t i = begin; i < end; ++i) {
      codes[i] = float_to_e4m3(std::clamp(x[i] / scale, -448.0f, 448.0f));
    }
  }
}

// Rows of a workspace: the values that a linear multiplies, and their scales.
struct Operand {
  float* values;  // [width]
  float* scales;  // [groups_of(width)]; null when values stand for themselves
};

// Replaces the operand's values by their FP8 codes' values when `quantize`.
void round_operand(Operand& operand, int64_t width, bool quantize) {
  if (!quantize) {
    operand.scales = nullptr;
    return;
  }
  for (int64_t begin = 0; begin < width; begin += kSumBlock) {
    const int64_t count = std::min(kSumBlock, width - begin);
    uint8_t codes[kSumBlock];
    quantize_row(codes, operand.scales + begin / kSumBlock, operand.values + begin, count);
    for (int64_t i = 0; i < count; ++i) operand.values[begin + i] = e4m3_to_float(codes[i]);
  }
}

bool is_fp8(const Linear& linear) { return linear.weight.type == DType::kF8E4M3; }

}  // namespace

void RefOps::quantize_rows(const View& codes, const View& scales, const View& in) {
  for (int64_t r = 0; r < in.rows(); ++r) {
    quantize_row(codes.row<uint8_t>(r), scales.row<float>(r), in.row<float>(r), in.cols());
  }
}

void RefOps::route(const Routing& out, const View& logits, const MoeMix& mix, const MoeReplay& replay) {
  const int64_t experts = logits.cols();
  for (int64_t r = 0; r < logits.rows(); ++r) {
    const float* logit = logits.row<float>(r);
    int32_t* index = out.indices.row<int32_t>(r);
    float* weight = out.weights.row<float>(r);
    const float top = *std::max_element(logit, logit + experts);
    const float total = wide_sum(experts, [&](int64_t e) { return std::exp(logit[e] - top); });
    const auto probability = [&](int64_t e) { return std::exp(logit[e] - top) / total; };
    float chosen = 0.0f;
    for (int64_t slot = 0; slot < mix.top_k; ++slot) {
      int64_t best = -1;
      for (int64_t e = 0; e < experts; ++e) {
        const bool taken = std::find(index, index + slot, static_cast<int32_t>(e)) != index + slot;
        if (!taken && (best < 0 || probability(e) > probability(best))) best = e;
      }
      index[slot] = replay.forced_indices.empty() ? static_cast<int32_t>(best)
                                                  : replay.forced_indices.row<int32_t>(r)[slot];
      weight[slot] = probability(index[slot]);
      chosen += weight[slot];
    }
    if (!mix.renormalize) continue;
    for (int64_t slot = 0; slot < mix.top_k; ++slot) weight[slot] /= chosen;
  }
}

int64_t RefOps::expert_workspace(const MoeMix& mix, int64_t) const {
  const int64_t hidden = mix.experts.hidden, ffn = mix.experts.ffn;
  return (hidden + groups_of(hidden) + ffn + groups_of(ffn)) * static_cast<int64_t>(sizeof(float));
}

void RefOps::expert_ffn(const View& out, const View& in, const Routing& routing, const MoeMix& mix,
                        const MoeReplay& replay, const View& workspace) {
  const int64_t hidden = mix.experts.hidden, ffn = mix.experts.ffn;
  INVARIANT(workspace.bytes() >= static_cast<size_t>(expert_workspace(mix, in.rows())), workspace.bytes(),
            " bytes of workspace");
  float* scratch = static_cast<float*>(workspace.data);
  for (int64_t r = 0; r < in.rows(); ++r) {
    float* y = out.row<float>(r);
    std::fill_n(y, hidden, 0.0f);
    for (int64_t slot = 0; slot < mix.top_k; ++slot) {
      const Expert& expert = mix.experts.each[static_cast<size_t>(routing.indices.row<int32_t>(r)[slot])];
      const float weight = routing.weights.row<float>(r)[slot];
      Operand x{scratch, scratch + hidden};
      Operand inner{x.scales + groups_of(hidden), x.scales + groups_of(hidden) + ffn};
      std::copy_n(in.row<float>(r), hidden, x.values);
      round_operand(x, hidden, replay.quantize_activations && is_fp8(expert.gate));
      for (int64_t f = 0; f < ffn; ++f) {
        const float gate = dot(expert.gate, f, x.values, x.scales);
        inner.values[f] = gate / (1.0f + std::exp(-gate)) * dot(expert.up, f, x.values, x.scales);
      }
      round_operand(inner, ffn, replay.quantize_activations && is_fp8(expert.down));
      for (int64_t c = 0; c < hidden; ++c) y[c] += weight * dot(expert.down, c, inner.values, inner.scales);
    }
  }
}

}  // namespace drama3
