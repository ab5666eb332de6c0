// Ops that treat every element alone, and norms of whole rows.
#pragma once

#include "kernels/cuda/common/launch.cuh"
#include "lib/tensor/view.h"

namespace drama3 {

void add_rows(LaunchQueue& queue, const View& out, const View& a, const View& b);
void scaled_add_rows(LaunchQueue& queue, const View& out, const View& x, const View& y, const View& gain);
void swiglu_rows(LaunchQueue& queue, const View& out, const View& gate, const View& up);
void gelu_rows(LaunchQueue& queue, const View& out, const View& in);
void tanh_rows(LaunchQueue& queue, const View& out, const View& in);
void snake_rows(LaunchQueue& queue, const View& out, const View& in, const View& alpha);
// out = routed + sigmoid(gate) * shared, gate one value a row.
void combine_shared_rows(LaunchQueue& queue, const View& out, const View& routed, const View& shared,
                         const View& gate);
// out[head * width + d] *= sigmoid(gate[head * stride + offset + d]).
struct HeadGate {
  int width = 0;
  int stride = 0;
  int offset = 0;
};
void gate_rows(LaunchQueue& queue, const View& out, const View& gate, const HeadGate& heads);
void copy_rows(LaunchQueue& queue, const View& out, const View& in);

void rms_norm_rows(LaunchQueue& queue, const View& out, const View& in, const View& weight, float eps);
void layer_norm_rows(LaunchQueue& queue, const View& out, const View& in, const View& weight,
                     const View& bias, float eps);

}  // namespace drama3
