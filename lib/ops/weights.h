// The weight handles that a backend prepares at load and that model parts hold.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/tensor/view.h"

namespace drama3 {

// y = x W^T + bias, W [out, in]. `weight` and `scale` stay in their stored type and, on the CPU, in the
// mapped file; a backend that packs keeps what it made in `packed`.
struct Linear {
  int64_t out = 0;
  int64_t in = 0;
  View weight;                         // [out, in] F32, F16, BF16 or F8_E4M3
  View scale;                          // [ceil(out/128), ceil(in/128)] F32 or BF16, only with F8_E4M3
  View bias;                           // [out] F32, or empty
  std::shared_ptr<const void> packed;  // the backend's own form, or null
};

// RMS norm gain as it is multiplied: 1 + w has been added at load where the model asks for it.
struct Norm {
  View weight;  // [dim] F32
  float eps = 0.0f;
};

// cos and sin of position * frequency for every position that a cache can hold.
struct Rope {
  View cos;  // [positions, rotary / 2] F32
  View sin;  // [positions, rotary / 2] F32
  int64_t rotary = 0;
  bool interleaved = false;  // pairs (2i, 2i+1); otherwise (i, i + rotary/2)
};

// One expert as stored; gate and up may be the two halves of one fused tensor.
struct Expert {
  Linear gate;  // [ffn, hidden]
  Linear up;    // [ffn, hidden]
  Linear down;  // [hidden, ffn]
};

// The routed experts of one layer.
struct Experts {
  int64_t hidden = 0;
  int64_t ffn = 0;
  std::vector<Expert> each;            // the CPU reads these in place
  std::shared_ptr<const void> packed;  // a device's own form, or null
};

// Causal convolution over rows (time), out row t from in rows t - i * dilation. Weight norm is folded at
// load.
struct Conv {
  int64_t in = 0;
  int64_t out = 0;
  int64_t kernel = 1;
  int64_t dilation = 1;
  int64_t stride = 1;
  bool depthwise = false;  // in == out, channel c from channel c
  View weight{};           // backend form: CPU [kernel, in, out] F32, depthwise [kernel, channels]
  View bias{};             // [out] F32
  std::shared_ptr<const void> packed{};  // owner of `weight`, or a device's own form

  // Rows of history a call needs before its first input row.
  int64_t history() const { return (kernel - 1) * dilation - (stride - 1); }
};

// Transposed convolution over rows: every input row gives `stride` output rows; what kernel > stride adds on
// the right is cut, so output row t * stride + j sums taps j + i * stride of input rows t - i.
struct ConvTranspose {
  int64_t in = 0;
  int64_t out = 0;
  int64_t kernel = 2;
  int64_t stride = 2;
  View weight{};                         // backend form: CPU [kernel, in, out] F32
  View bias{};                           // [out] F32
  std::shared_ptr<const void> packed{};  // owner of `weight`, or a device's own form

  int64_t history() const { return kernel / stride - 1; }
};

// Folded convolution weights on the host before a backend packs them.
struct HostConv {
  View weight;  // F32 [out, in / groups, kernel]; transposed convolution [in, out, kernel]
  View bias;    // F32 [out], or empty for none
};

// Snake activation of a channel: x + sin(alpha x)^2 / (alpha + 1e-9).
struct Snake {
  View alpha;  // [channels] F32
};

}  // namespace drama3
