// Causal convolutions of the CPU backend: sixteen output channels side by side, several rows at a time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv.cc"
#include "kernels/cpu/targets.h"

#include <hwy/foreach_target.h>

#include <algorithm>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drama3 {
namespace HWY_NAMESPACE {

constexpr int64_t kBlock = 256;                 // terms of one running sum
constexpr int kMostRows = kParts == 1 ? 8 : 6;  // whose sums fit the registers, with weights and an input

// Row `index` of the tail followed by the call's rows.
HWY_INLINE const float* joined_row(const Convolution& c, int64_t index) {
  return index < c.history ? c.tail.row<float>(index) : c.in.row<float>(index - c.history);
}

// sum[r] += sum over i < count of rows[r][i] * weight[i].
template <int kRows>
HWY_INLINE void add_terms(Floats (&sum)[kRows], const float* const (&rows)[kRows], const float* weight,
                          int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const Floats w = load(weight + i * kLanes);
    for (int r = 0; r < kRows; ++r) sum[r] = fma(splat(rows[r][i]), w, sum[r]);
  }
}

template <int kRows>
HWY_INLINE void convolve_rows(const Convolution& c, int64_t row, int64_t panel) {
  Floats total[kRows], sum[kRows];
  for (int r = 0; r < kRows; ++r) total[r] = sum[r] = zero();
  const float* weight = c.weight + panel * c.taps * c.ins * kLanes;
  int64_t terms = 0;
  for (int64_t k = 0; k < c.taps; ++k) {
    for (int64_t begin = 0; begin < c.ins; begin += kBlock) {
      const float* rows[kRows];
      for (int r = 0; r < kRows; ++r) {
        rows[r] = joined_row(c, (row + r) * c.stride + k * c.dilation) + begin;
      }
      const int64_t count = c.ins - begin < kBlock ? c.ins - begin : kBlock;
      add_terms(sum, rows, weight, count);
      weight += count * kLanes;
      terms += count;
      if (terms < kBlock) continue;
      for (int r = 0; r < kRows; ++r) total[r] = total[r] + sum[r];
      for (int r = 0; r < kRows; ++r) sum[r] = zero();
      terms = 0;
    }
  }
  const int64_t column = panel * kLanes, outs = c.out.cols() - column;
  const Floats bias = c.bias == nullptr ? zero() : load_first(c.bias + column, outs);
  for (int r = 0; r < kRows; ++r) {
    Floats value = total[r] + sum[r] + bias;
    if (c.added.data != nullptr) value = load_first(c.added.row<float>(row + r) + column, outs) + value;
    store_first(value, c.out.row<float>(row + r) + column, outs);
  }
}

// One output: sixteen inputs side by side instead.
HWY_INLINE void convolve_single(const Convolution& c, int64_t row) {
  Floats sum = zero();
  const float* weight = c.weight;
  for (int64_t k = 0; k < c.taps; ++k) {
    const float* from = joined_row(c, row * c.stride + k * c.dilation);
    for (int64_t i = 0; i < c.ins; i += kLanes) {
      sum = fma(load_first(from + i, c.ins - i), load(weight), sum);
      weight += kLanes;
    }
  }
  const float value = fold_sum(sum) + (c.bias == nullptr ? 0.0f : c.bias[0]);
  *c.out.row<float>(row) = c.added.data == nullptr ? value : *c.added.row<float>(row) + value;
}

void convolve_tile(const Convolution& c, int64_t row, int64_t count, int64_t panel) {
  const int64_t end = row + count;
  if (c.single) {
    for (; row < end; ++row) convolve_single(c, row);
    return;
  }
  for (; row + kMostRows <= end; row += kMostRows) convolve_rows<kMostRows>(c, row, panel);
  for (; row + 4 <= end; row += 4) convolve_rows<4>(c, row, panel);
  for (; row < end; ++row) convolve_rows<1>(c, row, panel);
}

// Channels [column, column + 16) of row `row`: taps oldest first, then the bias.
void depthwise_panel(const Convolution& c, int64_t row, int64_t column) {
  const int64_t channels = c.out.cols(), rest = channels - column;
  Floats sum = zero();
  for (int64_t k = 0; k < c.taps; ++k) {
    const float* from = joined_row(c, row + k * c.dilation) + column;
    sum = fma(load_first(from, rest), load_first(c.weight + k * channels + column, rest), sum);
  }
  if (c.bias != nullptr) sum = sum + load_first(c.bias + column, rest);
  store_first(sum, c.out.row<float>(row) + column, rest);
}

}  // namespace HWY_NAMESPACE
}  // namespace drama3
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drama3 {

HWY_EXPORT(convolve_tile);
HWY_EXPORT(depthwise_panel);

namespace {

constexpr int64_t kTileRows = 32;

void convolve_all(Threads& threads, const Convolution& c) {
  const int64_t rows = c.out.rows(), tiles = (rows + kTileRows - 1) / kTileRows;
  threads.split(c.panels() * tiles, kTileRows * 16 * c.taps * c.ins, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row = item % tiles * kTileRows;
      convolve(c, row, std::min(kTileRows, rows - row), item / tiles);
    }
  });
}

}  // namespace

void convolve(const Convolution& convolution, int64_t row, int64_t count, int64_t panel) {
  HWY_DYNAMIC_DISPATCH(convolve_tile)(convolution, row, count, panel);
}

Convolution convolution_of(const View& out, const View& in, const Conv& conv, const View& tail) {
  INVARIANT(in.rows() % conv.stride == 0 && out.rows() == in.rows() / conv.stride, "out ", out.shape.text(),
            " from ", in.shape.text(), " with stride ", conv.stride);
  INVARIANT(in.cols() == conv.in && out.cols() == conv.out &&
                (conv.history() == 0 || tail.rows() == conv.history()),
            "in ", in.shape.text(), ", out ", out.shape.text(), ", tail ", tail.shape.text());
  return {.tail = tail,
          .in = in,
          .history = conv.history(),
          .ins = conv.in,
          .taps = conv.kernel,
          .dilation = conv.dilation,
          .stride = conv.stride,
          .single = conv.out == 1,
          .weight = static_cast<const float*>(conv.weight.data),
          .bias = static_cast<const float*>(conv.bias.data),
          .out = out,
          .added = {}};
}

void shift_tail(const View& tail, const View& in) {
  const int64_t history = tail.empty() ? 0 : tail.rows();
  for (int64_t r = 0; r < history; ++r) {
    const int64_t from = in.rows() + r;
    const float* row = from < history ? tail.row<float>(from) : in.row<float>(from - history);
    std::copy_n(row, in.cols(), tail.row<float>(r));
  }
}

void CpuOps::conv(const View& out, const View& in, const Conv& conv, const View& tail) {
  const Convolution c = convolution_of(out, in, conv, tail);
  if (conv.depthwise) {
    INVARIANT(conv.stride == 1, "depthwise with stride ", conv.stride);
    threads_.split(out.rows(), 2 * conv.kernel * conv.out, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t column = 0; column < conv.out; column += 16) {
          HWY_DYNAMIC_DISPATCH(depthwise_panel)(c, row, column);
        }
      }
    });
  } else {
    convolve_all(threads_, c);
  }
  shift_tail(tail, in);
}

// As a convolution over input rows whose outputs are the stride * out values of the output rows that one
// input row starts.
void CpuOps::conv_transpose(const View& out, const View& in, const ConvTranspose& conv, const View& tail) {
  INVARIANT(
      out.rows() == in.rows() * conv.stride && in.cols() == conv.in && out.cols() == conv.out && out.dense(),
      "out ", out.shape.text(), " from ", in.shape.text(), " with stride ", conv.stride);
  convolve_all(threads_, {.tail = tail,
                          .in = in,
                          .history = conv.history(),
                          .ins = conv.in,
                          .taps = conv.kernel / conv.stride,
                          .dilation = 1,
                          .stride = 1,
                          .weight = static_cast<const float*>(conv.weight.data),
                          .bias = static_cast<const float*>(conv.bias.data),
                          .out = View(out.data, DType::kF32, Shape{in.rows(), conv.stride * conv.out}),
                          .added = {}});
  shift_tail(tail, in);
}

// snake1(conv0(snake0(in))) of a tile of rows stays in the cache for conv1 and the sum.
void CpuOps::residual_unit(const View& out, const View& in, const ResidualUnit& unit, const View& tail,
                           const View& scratch0, const View& scratch1) {
  const int64_t rows = in.rows(), tiles = (rows + kTileRows - 1) / kTileRows;
  if (tiles < threads_.count()) return Ops::residual_unit(out, in, unit, tail, scratch0, scratch1);
  snake(scratch0, in, unit.snake0);
  const Convolution first = convolution_of(scratch1, scratch0, unit.conv0, tail);
  Convolution second = convolution_of(out, scratch1, unit.conv1, View{});
  second.added = in;
  const int64_t cost = kTileRows * in.cols() * in.cols() * (unit.conv0.kernel + 1);
  threads_.split(tiles, cost, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t row = tile * kTileRows, count = std::min(kTileRows, rows - row);
      for (int64_t panel = 0; panel < first.panels(); ++panel) convolve(first, row, count, panel);
      const View inner = scratch1.rows_from(row, count);
      snake_rows(inner, inner, unit.snake1);
      for (int64_t panel = 0; panel < second.panels(); ++panel) convolve(second, row, count, panel);
    }
  });
  shift_tail(tail, scratch0);
}

}  // namespace drama3
#endif
