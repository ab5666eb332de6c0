// Arguments of the gated delta rule's kernels.
#pragma once

#include "kernels/cuda/common/args.cuh"
#include "kernels/cuda/common/launch.cuh"
#include "lib/tensor/view.h"

namespace drama3 {

constexpr int kDeltaWidth = 128;  // key_dim and value_dim
constexpr int kMaxTaps = 4;
constexpr int kMaxCluster = 8;  // blocks of a cluster that every device with clusters takes

struct DeltaArgs {
  Rows<const bf16> qkv;  // raw projection (fused and convolution) or convolved (recurrence)
  Rows<const bf16> a, b;
  const float* conv = nullptr;     // [taps, channels]
  const float* a_log = nullptr;    // [value_heads]
  const float* dt_bias = nullptr;  // [value_heads]
  Rows<bf16> tail;                 // [taps - 1, channels]
  float* memory = nullptr;         // [value_heads, 128, 128]
  Rows<float> decay, beta;         // [rows, value_heads]
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
void delta_fused(LaunchQueue& queue,
                 const DeltaArgs& args);  // the three for one row, from the raw projection
// out [rows, heads * width] = gated norm of in, per head of weight's width; all BF16.
void gated_norm(LaunchQueue& queue, const View& out, const View& in, const View& z, const View& weight,
                float eps);

}  // namespace drama3
