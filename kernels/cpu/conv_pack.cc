// Convolution weights in panels of sixteen outputs, made once at load.
#include <vector>

#include "kernels/cpu/cpu_ops.h"

namespace drama3 {
namespace {

constexpr int64_t kPanel = 16;

int64_t rounded_up(int64_t count) { return (count + kPanel - 1) / kPanel * kPanel; }

// Where the value of (tap, in, out) stands in memory of [panels, taps, ins, 16].
int64_t panel_index(int64_t taps, int64_t ins, int64_t tap, int64_t in, int64_t out) {
  return ((out / kPanel * taps + tap) * ins + in) * kPanel + out % kPanel;
}

Shape panel_shape(int64_t taps, int64_t ins, int64_t outs) {
  return Shape{rounded_up(outs) / kPanel, taps * ins, kPanel};
}

}  // namespace

Conv CpuOps::prepare_conv(const HostConv& host, const Conv& sizes) {
  if (sizes.depthwise) return HostOps::prepare_conv(host, sizes);
  Conv conv = sizes;
  const bool single = conv.out == 1;
  const Buffer packed = allocate(DType::kF32, single ? Shape{conv.kernel, rounded_up(conv.in)}
                                                     : panel_shape(conv.kernel, conv.in, conv.out));
  const float* from = static_cast<const float*>(host.weight.data);
  float* to = static_cast<float*>(packed.view.data);
  for (int64_t out = 0; out < conv.out; ++out) {
    for (int64_t in = 0; in < conv.in; ++in) {
      for (int64_t tap = 0; tap < conv.kernel; ++tap) {
        const int64_t at =
            single ? tap * rounded_up(conv.in) + in : panel_index(conv.kernel, conv.in, tap, in, out);
        to[at] = *from++;
      }
    }
  }
  conv.weight = packed.view;
  conv.packed = packed.owner;
  if (!host.bias.empty()) conv.bias = prepare_vector(host.bias, 0.0f);
  return conv;
}

// As a convolution with stride * out outputs: tap j + age * stride is output phase j of the input row of that
// age.
ConvTranspose CpuOps::prepare_conv_transpose(const HostConv& host, const ConvTranspose& sizes) {
  ConvTranspose conv = sizes;
  INVARIANT(conv.kernel % conv.stride == 0, "kernel ", conv.kernel, ", stride ", conv.stride);
  const int64_t taps = conv.kernel / conv.stride, outs = conv.stride * conv.out;
  const Buffer packed = allocate(DType::kF32, panel_shape(taps, conv.in, outs));
  const float* from = static_cast<const float*>(host.weight.data);
  float* to = static_cast<float*>(packed.view.data);
  for (int64_t in = 0; in < conv.in; ++in) {
    for (int64_t out = 0; out < conv.out; ++out) {
      for (int64_t tap = 0; tap < conv.kernel; ++tap) {
        const int64_t age = tap / conv.stride, phase = tap % conv.stride;
        to[panel_index(taps, conv.in, taps - 1 - age, in, phase * conv.out + out)] = *from++;
      }
    }
  }
  conv.weight = packed.view;
  conv.packed = packed.owner;
  if (host.bias.empty()) return conv;
  std::vector<float> repeated;
  const View bias = prepare_vector(host.bias, 0.0f);
  for (int64_t phase = 0; phase < conv.stride; ++phase) {
    repeated.insert(repeated.end(), bias.row<float>(0), bias.row<float>(0) + conv.out);
  }
  conv.bias = prepare_vector(View(repeated.data(), DType::kF32, Shape{outs}), 0.0f);
  return conv;
}

}  // namespace drama3
