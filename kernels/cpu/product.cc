// Register-blocked products that decode weights from their stored type where they are multiplied.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/product.cc"
#include "kernels/cpu/targets.h"

#include <hwy/foreach_target.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/cpu/product.h"
#include "kernels/cpu/simd-inl.h"
#include "lib/base/scalars.h"

HWY_BEFORE_NAMESPACE();
namespace drama3 {
namespace HWY_NAMESPACE {

constexpr int64_t kScaleBlock = 128;

// How sixteen weights are read, and whether blocks of 128 x 128 carry a scale.
struct F32Weight {
  using Element = float;
  static constexpr bool kScaled = false;
  static HWY_INLINE Floats read(const float* at) { return load(at); }
};
struct F16Weight {
  using Element = uint16_t;
  static constexpr bool kScaled = false;
  static HWY_INLINE Floats read(const uint16_t* at) { return load_f16(at); }
};
struct Bf16Weight {
  using Element = uint16_t;
  static constexpr bool kScaled = false;
  static HWY_INLINE Floats read(const uint16_t* at) { return load_bf16(at); }
};
struct E4m3Weight {
  using Element = uint8_t;
  static constexpr bool kScaled = true;
  static HWY_INLINE Floats read(const uint8_t* at) { return load_e4m3(at); }
};

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
// For inputs that tiny_inputs gave. Its products are, as real numbers, those of E4m3Weight, so its sums have
// the same bits.
struct TinyE4m3Weight {
  using Element = uint8_t;
  static constexpr bool kScaled = true;
  static HWY_INLINE Floats read(const uint8_t* at) { return load_tiny_e4m3(at); }
};

// Multiplies inputs with what load_tiny_e4m3 leaves out beside load_e4m3; false when one overflows.
bool tiny_inputs(float* to, const float* x, int64_t count) {
  constexpr float kFactor = 1 / (kTinyE4m3 * kE4m3Unit);
  const Floats infinity = splat(std::numeric_limits<float>::infinity());
  Floats greatest = zero();
  for (int64_t k = 0; k < count; k += kLanes) {
    const Floats from = load_first(x + k, count - k);
    store_first(from * splat(kFactor), to + k, count - k);
    const Floats size = abs(from);
    greatest = max(select(less(size, infinity), size, zero()), greatest);
  }
  return fold_max(greatest) < 0x1p128 / double{kFactor};
}
#endif

// A tile of kRows rows and kOuts outputs: where each row of inputs and of weights begins.
template <class Weight, int kRows, int kOuts>
struct Tile {
  const float* x[kRows];
  const float* x_scale[kRows];
  const typename Weight::Element* w[kOuts];
  const std::byte* scale[kOuts];
};

// sum += x w over inputs [begin, end).
template <class Weight, int kRows, int kOuts>
HWY_INLINE void accumulate(Floats (&sum)[kRows][kOuts], const Tile<Weight, kRows, kOuts>& tile, int64_t begin,
                           int64_t end) {
  int64_t k = begin;
  for (; k + kLanes <= end; k += kLanes) {
    Floats w[kOuts];
    for (int o = 0; o < kOuts; ++o) w[o] = Weight::read(tile.w[o] + k);
    for (int r = 0; r < kRows; ++r) {
      const Floats x = load(tile.x[r] + k);
      for (int o = 0; o < kOuts; ++o) sum[r][o] = fma(x, w[o], sum[r][o]);
    }
  }
  if (k == end) return;
  Floats w[kOuts];
  for (int o = 0; o < kOuts; ++o) {
    typename Weight::Element rest[kLanes] = {};
    std::memcpy(rest, tile.w[o] + k, static_cast<size_t>(end - k) * sizeof(rest[0]));
    w[o] = Weight::read(rest);
  }
  for (int r = 0; r < kRows; ++r) {
    const Floats x = load_first(tile.x[r] + k, end - k);
    for (int o = 0; o < kOuts; ++o) sum[r][o] = fma(x, w[o], sum[r][o]);
  }
}

// The row of block scales that an output belongs to.
HWY_INLINE const std::byte* scale_row(const View& scale, int64_t out) {
  return static_cast<const std::byte*>(scale.data) +
         static_cast<uint64_t>(out) / kScaleBlock * static_cast<uint64_t>(scale.row_stride) *
             (scale.type == DType::kF32 ? sizeof(float) : sizeof(uint16_t));
}

// Scale number `block` of a row, times what reading e4m3 left out.
HWY_INLINE float block_scale(const std::byte* row, bool is_f32, int64_t block) {
  float value;
  if (is_f32) {
    std::memcpy(&value, row + block * static_cast<int64_t>(sizeof value), sizeof value);
  } else {
    uint16_t bits;
    std::memcpy(&bits, row + block * static_cast<int64_t>(sizeof bits), sizeof bits);
    value = bf16_to_float(bits);
  }
  return value * kE4m3Unit;
}

// Weights are asked for this long before they are read, or a tile's rows if those are longer.
constexpr int64_t kAheadBytes = 4096;

// Asks for memory into the second cache level, which keeps more reads in flight than the first.
HWY_INLINE void prefetch(uintptr_t at, int64_t bytes) {
  for (int64_t k = 0; k < bytes; k += 64) {
    __builtin_prefetch(reinterpret_cast<const void*>(at + static_cast<uintptr_t>(k)), 0, 2);
  }
}

// Asks, while a tile's block is multiplied, for as many weights further on, in the order of memory, which the
// memory likes better than a stream per row. Hardware prefetchers alone stop at pages, and a row is about one
// page long.
template <class Weight, int kRows, int kOuts>
HWY_INLINE void prefetch_block(const Tile<Weight, kRows, kOuts>& tile, int64_t begin, const Linear& weight) {
  constexpr int64_t kSize = sizeof(typename Weight::Element);
  int64_t from = begin * kOuts + std::max<int64_t>(kOuts * weight.in, kAheadBytes / kSize);
  if (weight.weight.row_stride != weight.in) {
    from = from / weight.in * weight.weight.row_stride + from % weight.in;
  }
  prefetch(reinterpret_cast<uintptr_t>(tile.w[0]) + static_cast<uintptr_t>(from * kSize),
           kOuts * kScaleBlock * kSize);
}

// sum += x w over the block of inputs at `begin`; whole blocks have a trip count that the compiler knows.
template <class Weight, int kRows, int kOuts>
HWY_INLINE void add_block(Floats (&sum)[kRows][kOuts], const Tile<Weight, kRows, kOuts>& tile, int64_t begin,
                          int64_t inputs) {
  if (begin + kScaleBlock > inputs) return accumulate(sum, tile, begin, inputs);
  for (int64_t k = 0; k < kScaleBlock; k += kLanes) {
    if constexpr (kRows == 1) {
      // Weights are widened one after the other: all at once they would push sums out of the registers.
      const Floats x = load(tile.x[0] + begin + k);
      for (int o = 0; o < kOuts; ++o) {
        sum[0][o] = fma(x, Weight::read(tile.w[o] + begin + k), sum[0][o]);
      }
      continue;
    }
    Floats w[kOuts];
    for (int o = 0; o < kOuts; ++o) w[o] = Weight::read(tile.w[o] + begin + k);
    for (int r = 0; r < kRows; ++r) {
      const Floats x = load(tile.x[r] + begin + k);
      for (int o = 0; o < kOuts; ++o) sum[r][o] = fma(x, w[o], sum[r][o]);
    }
  }
}

template <class Weight, int kRows, int kOuts>
HWY_INLINE void sum_tile(Floats (&total)[kRows][kOuts], const Tile<Weight, kRows, kOuts>& tile,
                         const Linear& weight) {
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOuts; ++o) total[r][o] = zero();
  }
  const bool f32_scales = weight.scale.type == DType::kF32;
  for (int64_t begin = 0; begin < weight.in; begin += kScaleBlock) {
    if constexpr (kRows == 1) prefetch_block(tile, begin, weight);
    if constexpr (!Weight::kScaled) {
      add_block(total, tile, begin, weight.in);
      continue;
    }
    Floats sum[kRows][kOuts];
    for (int r = 0; r < kRows; ++r) {
      for (int o = 0; o < kOuts; ++o) sum[r][o] = zero();
    }
    add_block(sum, tile, begin, weight.in);
    for (int o = 0; o < kOuts; ++o) {
      const Floats scale = splat(block_scale(tile.scale[o], f32_scales, begin / kScaleBlock));
      for (int r = 0; r < kRows; ++r) {
        if (tile.x_scale[r] != nullptr) sum[r][o] = sum[r][o] * splat(tile.x_scale[r][begin / kScaleBlock]);
        total[r][o] = fma(sum[r][o], scale, total[r][o]);
      }
    }
  }
}

// Rows [row, row + kRows) and outputs [out, out + kOuts).
template <class Weight, int kRows, int kOuts>
HWY_NOINLINE void multiply_tile(const Linear& weight, const ProductRows& rows, int64_t row, int64_t out) {
  Tile<Weight, kRows, kOuts> tile;
  for (int r = 0; r < kRows; ++r) {
    const int64_t from = rows.x_index != nullptr ? rows.x_index[row + r] : row + r;
    tile.x[r] = rows.x + from * rows.x_stride;
    tile.x_scale[r] = rows.x_scale != nullptr ? rows.x_scale + from * rows.scale_stride : nullptr;
  }
  for (int o = 0; o < kOuts; ++o) {
    tile.scale[o] = Weight::kScaled ? scale_row(weight.scale, out + o) : nullptr;
    tile.w[o] = static_cast<const typename Weight::Element*>(weight.weight.data) +
                (out + o) * weight.weight.row_stride;
  }
  Floats total[kRows][kOuts];
  sum_tile(total, tile, weight);
  for (int r = 0; r < kRows; ++r) {
    float* y = rows.y + (rows.y_index != nullptr ? rows.y_index[row + r] : row + r) * rows.y_stride;
    for (int o = 0; o < kOuts; ++o) {
      const float value = fold_sum(total[r][o]);
      y[out + o] = weight.bias.empty() ? value : value + static_cast<const float*>(weight.bias.data)[out + o];
    }
  }
}

// Tile sizes: as many sums as registers hold beside the operands.
constexpr int kTileRows = kParts == 1 ? 4 : 2;
constexpr int kTileOuts = kParts == 1 ? 4 : 2;
constexpr int kSingleRowOuts = kParts == 1 ? 4 : 2;

// One row alone.
template <class Weight>
void multiply_row(const Linear& weight, int64_t begin, int64_t end, const ProductRows& rows, int64_t row) {
  using Element = typename Weight::Element;
  prefetch(reinterpret_cast<uintptr_t>(static_cast<const Element*>(weight.weight.data) +
                                       begin * weight.weight.row_stride),
           kAheadBytes);
  int64_t out = begin;
  for (; out + kSingleRowOuts <= end; out += kSingleRowOuts) {
    multiply_tile<Weight, 1, kSingleRowOuts>(weight, rows, row, out);
  }
  for (; out < end; ++out) multiply_tile<Weight, 1, 1>(weight, rows, row, out);
}

// One row alone and an FP8 weight, in tiny units; false, with nothing done, where those do not pay or fit.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
bool multiply_tiny_row(const Linear& weight, int64_t begin, int64_t end, const ProductRows& rows,
                       int64_t row) {
  constexpr int64_t kMostInputs = 16384;
  if (!multiplies_subnormals_at_full_speed() || weight.in > kMostInputs) return false;
  alignas(64) float x[kMostInputs];
  const int64_t from = rows.x_index != nullptr ? rows.x_index[row] : row;
  const int64_t to = rows.y_index != nullptr ? rows.y_index[row] : row;
  if (!tiny_inputs(x, rows.x + from * rows.x_stride, weight.in)) return false;
  const ProductRows alone{
      .x = x,
      .x_scale = rows.x_scale != nullptr ? rows.x_scale + from * rows.scale_stride : nullptr,
      .y = rows.y + to * rows.y_stride,
      .count = 1};
  multiply_row<TinyE4m3Weight>(weight, begin, end, alone, 0);
  return true;
}
#else
bool multiply_tiny_row(const Linear&, int64_t, int64_t, const ProductRows&, int64_t) { return false; }
#endif

template <class Weight>
void multiply_rows(const Linear& weight, int64_t begin, int64_t end, const ProductRows& rows) {
  int64_t row = 0;
  if (rows.count >= kTileRows) {
    const int64_t tiled = rows.count / kTileRows * kTileRows;
    int64_t out = begin;
    for (; out + kTileOuts <= end; out += kTileOuts) {
      for (row = 0; row < tiled; row += kTileRows) {
        multiply_tile<Weight, kTileRows, kTileOuts>(weight, rows, row, out);
      }
    }
    for (; out < end; ++out) {
      for (row = 0; row < tiled; row += kTileRows) {
        multiply_tile<Weight, kTileRows, 1>(weight, rows, row, out);
      }
    }
    row = tiled;
  }
  for (; row < rows.count; ++row) {
    if (std::is_same_v<Weight, E4m3Weight> && multiply_tiny_row(weight, begin, end, rows, row)) continue;
    multiply_row<Weight>(weight, begin, end, rows, row);
  }
}

void multiply_outputs(const Linear& weight, int64_t begin, int64_t end, const ProductRows& rows) {
  switch (weight.weight.type) {
    case DType::kF32:
      return multiply_rows<F32Weight>(weight, begin, end, rows);
    case DType::kF16:
      return multiply_rows<F16Weight>(weight, begin, end, rows);
    case DType::kBF16:
      return multiply_rows<Bf16Weight>(weight, begin, end, rows);
    case DType::kF8E4M3:
      INVARIANT(!weight.scale.empty(), "FP8 weight without block scales");
      return multiply_rows<E4m3Weight>(weight, begin, end, rows);
    default:
      INVARIANT(false, "no product with ", dtype_name(weight.weight.type));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace drama3
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drama3 {

HWY_EXPORT(multiply_outputs);

void multiply(const Linear& weight, int64_t begin, int64_t end, const ProductRows& rows) {
  HWY_DYNAMIC_DISPATCH(multiply_outputs)(weight, begin, end, rows);
}

}  // namespace drama3
#endif
