// Arguments of the gated delta rule's kernels.
#pragma once

#include "kernels/cuda/common/args.cuh"
#include "kernels/cuda/common/launch.cuh"

namespace drama3 {

constexpr int kDeltaWidth = 128;  // key_dim and value_dim
constexpr int kMaxTaps = 4;

struct DeltaArgs {
  Rows<const bf16> qkv;  // raw projection (fused and convolution) or convolved (recurrence)
  Rows<const bf16> z, a, b;
  const float* conv = nullptr;     // [taps, channels]
  const float* a_log = nullptr;    // [value_heads]
  const float* dt_bias = nullptr;  // [value_heads]
  const float* norm = nullptr;     // [128]
  float eps = 0.0f;
  Rows<bf16> tail;          // [taps - 1, channels]
  float* memory = nullptr;  // [value_heads, 128, 128]
  Rows<float> decay, beta;  // [rows, value_heads]
  Rows<bf16> out;
  int rows = 0;
  int key_heads = 0;
  int value_heads = 0;
  int taps = 0;
  int channels = 0;
};

void delta_conv(LaunchQueue& queue, const DeltaArgs& args);
void delta_gate(LaunchQueue& queue, const DeltaArgs& args);
void delta_recur(LaunchQueue& queue, const DeltaArgs& args);
void delta_fused(LaunchQueue& queue, const DeltaArgs& args);  // one row
// out rows = gated norm of in rows per head of `width` columns.
struct GatedNormArgs {
  Rows<bf16> out;
  Rows<const bf16> in, z;
  const float* weight = nullptr;
  float eps = 0.0f;
  int rows = 0;
  int heads = 0;
  int width = 0;
};
void gated_norm(LaunchQueue& queue, const GatedNormArgs& args);

}  // namespace drama3
