// One causal convolution as the CPU backend's kernel sees it, and the kernel.
#pragma once

#include "lib/ops/weights.h"

namespace drama3 {

// Output row r sums, over taps k and inputs i, joined[r * stride + k * dilation][i] * weight[k][i], where
// joined is the tail's rows followed by the call's. Outputs stand in panels of sixteen.
//
// Sums: terms in the order of taps, oldest first, and of inputs, in blocks of 256; the blocks in that order;
// then the bias; then the row of `added`. A single output has lane i sum the inputs i, i + 16, ... of all
// taps, and the lanes folded by halves.
struct Convolution {
  View tail;  // [history, ins]
  View in;    // [rows * stride, ins]
  int64_t history = 0;
  int64_t ins = 0;
  int64_t taps = 1;
  int64_t dilation = 1;
  int64_t stride = 1;
  bool single = false;            // one output, weights [taps, ins up to a multiple of 16]
  const float* weight = nullptr;  // [panels, taps, ins, 16]; zeros where filled up
  const float* bias = nullptr;    // [outs]; null for none
  View out;                       // [rows, outs]
  View added;                     // [rows, outs]; may be out; empty for none

  int64_t panels() const { return (out.cols() + 15) / 16; }
};

// What a prepared convolution refers to.
Convolution convolution_of(const View& out, const View& in, const Conv& conv, const View& tail);

// Computes output rows [row, row + count) of one panel.
void convolve(const Convolution& convolution, int64_t row, int64_t count, int64_t panel);

// tail = the last rows of the tail followed by the call's rows.
void shift_tail(const View& tail, const View& in);

}  // namespace drama3
