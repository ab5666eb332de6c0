// Register-blocked products that decode weights from their stored type where they are multiplied.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/product.cc"
#include "kernels/cpu/targets.h"

#include <hwy/foreach_target.h>

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

// Asks for the weights that each row of the tile will have read kAhead bytes from now, which may be those of
// the rows of a later tile. Into the second cache level, which keeps more reads in flight than the first:
// hardware prefetchers alone stop at pages, and a row is about one page long.
template <class Weight, int kRows, int kOuts>
HWY_INLINE void prefetch_block(const Tile<Weight, kRows, kOuts>& tile, int64_t begin, const Linear& weight) {
  constexpr int64_t kSize = sizeof(typename Weight::Element);
  constexpr int64_t kAhead = 2048 / kSize;  // elements
  constexpr int64_t kLine = 64 / kSize;     // elements
  int64_t from = begin + kAhead;
  int64_t row = 0;
  if (from >= weight.in) {
    row = from / weight.in * kOuts;
    from %= weight.in;
  }
  const uintptr_t offset = static_cast<uintptr_t>((row * weight.weight.row_stride + from) * kSize);
  for (int o = 0; o < kOuts; ++o) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(tile.w[o]) + offset;
    for (int64_t k = 0; k < kScaleBlock; k += kLine) {
      __builtin_prefetch(reinterpret_cast<const void*>(at + static_cast<uintptr_t>(k * kSize)), 0, 2);
    }
  }
}

// sum += x w over the block of inputs at `begin`; whole blocks have a trip count that the compiler knows.
template <class Weight, int kRows, int kOuts>
HWY_INLINE void add_block(Floats (&sum)[kRows][kOuts], const Tile<Weight, kRows, kOuts>& tile, int64_t begin,
                          int64_t inputs) {
  if (begin + kScaleBlock > inputs) return accumulate(sum, tile, begin, inputs);
  for (int64_t k = 0; k < kScaleBlock; k += kLanes) {
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
constexpr int kSingleRowOuts = 4;

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
    int64_t out = begin;
    for (; out + kSingleRowOuts <= end; out += kSingleRowOuts) {
      multiply_tile<Weight, 1, kSingleRowOuts>(weight, rows, row, out);
    }
    for (; out < end; ++out) multiply_tile<Weight, 1, 1>(weight, rows, row, out);
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
