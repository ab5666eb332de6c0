// Causal convolutions over rows: plain, strided, dilated, depthwise and transposed.
#include "kernels/ref/ref_ops.h"

namespace drama3 {
namespace {

// Row `index` of the tail followed by the call's rows.
const float* joined_row(const View& tail, const View& in, int64_t history, int64_t index) {
  return index < history ? tail.row<float>(index) : in.row<float>(index - history);
}

// tail = the last `history` rows of the tail followed by the call's rows.
void shift_tail(const View& tail, const View& in, int64_t history) {
  for (int64_t r = 0; r < history; ++r) {
    const float* from = joined_row(tail, in, history, in.rows() + r);
    float* to = tail.row<float>(r);
    for (int64_t c = 0; c < in.cols(); ++c) to[c] = from[c];
  }
}

// out[o] += sum over i of in[i] * weight[i * outs + o].
void add_products(float* out, const float* in, const float* weight, int64_t ins, int64_t outs) {
  for (int64_t i = 0; i < ins; ++i) {
    for (int64_t o = 0; o < outs; ++o) out[o] += in[i] * weight[i * outs + o];
  }
}

void add_bias(float* out, const View& bias) {
  if (bias.empty()) return;
  const float* values = bias.row<float>(0);
  for (int64_t o = 0; o < bias.elements(); ++o) out[o] += values[o];
}

void clear(float* out, int64_t count) {
  for (int64_t o = 0; o < count; ++o) out[o] = 0.0f;
}

}  // namespace

// Sums run over taps, oldest first, and over inputs inside a tap; the bias comes last.
void RefOps::conv(const View& out, const View& in, const Conv& conv, const View& tail) {
  const int64_t history = conv.history();
  INVARIANT(in.rows() % conv.stride == 0 && out.rows() == in.rows() / conv.stride, "out ", out.shape.text(),
            " from ", in.shape.text(), " with stride ", conv.stride);
  INVARIANT(in.cols() == conv.in && out.cols() == conv.out && (history == 0 || tail.rows() == history), "in ",
            in.shape.text(), ", out ", out.shape.text(), ", tail ", tail.shape.text());
  const float* weight = static_cast<const float*>(conv.weight.data);
  for (int64_t r = 0; r < out.rows(); ++r) {
    float* to = out.row<float>(r);
    clear(to, conv.out);
    for (int64_t k = 0; k < conv.kernel; ++k) {
      const float* from = joined_row(tail, in, history, r * conv.stride + k * conv.dilation);
      if (conv.depthwise) {
        for (int64_t c = 0; c < conv.out; ++c) to[c] += from[c] * weight[k * conv.out + c];
      } else {
        add_products(to, from, weight + k * conv.in * conv.out, conv.in, conv.out);
      }
    }
    add_bias(to, conv.bias);
  }
  shift_tail(tail, in, history);
}

// Sums run over input rows, oldest first, and over inputs inside a row; the bias comes last.
void RefOps::conv_transpose(const View& out, const View& in, const ConvTranspose& conv, const View& tail) {
  const int64_t history = conv.history();
  INVARIANT(out.rows() == in.rows() * conv.stride && in.cols() == conv.in && out.cols() == conv.out, "out ",
            out.shape.text(), " from ", in.shape.text(), " with stride ", conv.stride);
  const float* weight = static_cast<const float*>(conv.weight.data);
  for (int64_t r = 0; r < out.rows(); ++r) {
    float* to = out.row<float>(r);
    clear(to, conv.out);
    for (int64_t age = history; age >= 0; --age) {
      const float* from = joined_row(tail, in, history, r / conv.stride + history - age);
      const int64_t tap = r % conv.stride + age * conv.stride;
      add_products(to, from, weight + tap * conv.in * conv.out, conv.in, conv.out);
    }
    add_bias(to, conv.bias);
  }
  shift_tail(tail, in, history);
}

}  // namespace drama3
