// Rounding of rows to FP8 e4m3 per group of 128, as lanes. Included once per target.
#if defined(DRAMA3_KERNELS_CPU_QUANTIZE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef DRAMA3_KERNELS_CPU_QUANTIZE_INL_H
#undef DRAMA3_KERNELS_CPU_QUANTIZE_INL_H
#else
#define DRAMA3_KERNELS_CPU_QUANTIZE_INL_H
#endif

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drama3 {
namespace HWY_NAMESPACE {

// The e4m3 number nearest to x (|x| <= 448), ties to the even code.
HWY_INLINE Floats round_to_e4m3(const Floats& x) {
  // Normal numbers keep three fraction bits: round at bit 20 of the float.
  const Ints odd = shift_right<20>(bits(x)) & splat_int(1);
  const Ints cut = (bits(x) + splat_int(0x7ffff) + odd) & splat_int(static_cast<int32_t>(0xfff00000));
  // Below 2^-6 lie the multiples of 2^-9: adding 1.5 * 2^14 leaves a float's last bit there. The sign of a
  // result of zero is x's.
  const Floats near = x + splat(0x1.8p14f) - splat(0x1.8p14f);
  const Floats small = from_bits(bits(near) | (bits(x) & splat_int(INT32_MIN)));
  return select(less(abs(x), splat(0x1p-6f)), small, from_bits(cut));
}

// Code values of up to 128 values and their scale amax / 448. `values` may be `x`.
HWY_INLINE float quantize_group(float* values, const float* x, int64_t count) {
  Floats top = splat(1e-10f);
  for (int64_t i = 0; i < count; i += kLanes) top = max(abs(load_first(x + i, count - i)), top);
  const float scale = fold_max(top) / 448.0f;
  for (int64_t i = 0; i < count; i += kLanes) {
    const Floats scaled = load_first(x + i, count - i) / splat(scale);
    const Floats bounded = min(max(scaled, splat(-448.0f)), splat(448.0f));
    store_first(round_to_e4m3(bounded), values + i, count - i);
  }
  return scale;
}

}  // namespace HWY_NAMESPACE
}  // namespace drama3
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
