// Sixteen float lanes on any instruction set, with the same bits on each: the only vector type of the CPU
// kernels. Included once per target, inside a source that hwy/foreach_target.h re-includes.
//
// Lanes stand for 16 / width registers. A sum over n terms gives lane i the terms i, i + 16, ... by fused
// multiply-add; then lanes are folded by halves: i + (i + 8), i + (i + 4), i + (i + 2), i + (i + 1).
#if defined(DRAMA3_KERNELS_CPU_SIMD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef DRAMA3_KERNELS_CPU_SIMD_INL_H
#undef DRAMA3_KERNELS_CPU_SIMD_INL_H
#else
#define DRAMA3_KERNELS_CPU_SIMD_INL_H
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#if HWY_ARCH_X86 && (HWY_TARGETS & HWY_SSSE3) != 0
#error "include kernels/cpu/targets.h before hwy/foreach_target.h, in a block of its own"
#endif

HWY_BEFORE_NAMESPACE();
namespace drama3 {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr int64_t kLanes = 16;

using FloatTag = hn::CappedTag<float, 16>;
using IntTag = hn::RebindToSigned<FloatTag>;
using UintTag = hn::RebindToUnsigned<FloatTag>;
using FloatPart = hn::Vec<FloatTag>;
using IntPart = hn::Vec<IntTag>;
using MaskPart = hn::Mask<FloatTag>;

inline constexpr int kWidth = static_cast<int>(hn::MaxLanes(FloatTag()));  // floats of one register
inline constexpr int kParts = static_cast<int>(kLanes) / kWidth;           // registers of sixteen lanes

// The empty constructors leave the registers uninitialised; a compiler's own ones would miss the target's
// attributes.
struct Floats {
  HWY_INLINE Floats() {}
  FloatPart part[kParts];
};
struct Ints {
  HWY_INLINE Ints() {}
  IntPart part[kParts];
};
struct Mask {
  HWY_INLINE Mask() {}
  MaskPart part[kParts];
};

// Defines `result`, each part i of it being the expression.
#define DRAMA3_EACH_PART(Type, expression)                      \
  Type result;                                                  \
  for (int i = 0; i < kParts; ++i) result.part[i] = expression; \
  return result

// ---- memory ----

HWY_INLINE Floats load(const float* from) {
  DRAMA3_EACH_PART(Floats, hn::LoadU(FloatTag(), from + i * kWidth));
}
HWY_INLINE void store(const Floats& value, float* to) {
  for (int i = 0; i < kParts; ++i) hn::StoreU(value.part[i], FloatTag(), to + i * kWidth);
}
HWY_INLINE Floats splat(float value) { DRAMA3_EACH_PART(Floats, hn::Set(FloatTag(), value)); }
HWY_INLINE Floats zero() { DRAMA3_EACH_PART(Floats, hn::Zero(FloatTag())); }

// The first `count` lanes from memory, the others 0.
HWY_INLINE Floats load_first(const float* from, int64_t count) {
  if (count >= kLanes) return load(from);
  float lanes[kLanes] = {};
  std::memcpy(lanes, from, static_cast<size_t>(count) * sizeof(float));
  return load(lanes);
}
HWY_INLINE void store_first(const Floats& value, float* to, int64_t count) {
  if (count >= kLanes) return store(value, to);
  float lanes[kLanes];
  store(value, lanes);
  std::memcpy(to, lanes, static_cast<size_t>(count) * sizeof(float));
}

// ---- arithmetic ----

HWY_INLINE Floats operator+(const Floats& a, const Floats& b) {
  DRAMA3_EACH_PART(Floats, hn::Add(a.part[i], b.part[i]));
}
HWY_INLINE Floats operator-(const Floats& a, const Floats& b) {
  DRAMA3_EACH_PART(Floats, hn::Sub(a.part[i], b.part[i]));
}
HWY_INLINE Floats operator*(const Floats& a, const Floats& b) {
  DRAMA3_EACH_PART(Floats, hn::Mul(a.part[i], b.part[i]));
}
HWY_INLINE Floats operator/(const Floats& a, const Floats& b) {
  DRAMA3_EACH_PART(Floats, hn::Div(a.part[i], b.part[i]));
}
HWY_INLINE Floats sqrt(const Floats& a) { DRAMA3_EACH_PART(Floats, hn::Sqrt(a.part[i])); }

// One fused multiply-add of a register: in hardware, or lane by lane through the C library's exact fma.
HWY_INLINE FloatPart fused_part(FloatPart a, FloatPart b, FloatPart c) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  HWY_ALIGN float x[kWidth];
  HWY_ALIGN float y[kWidth];
  HWY_ALIGN float z[kWidth];
  hn::Store(a, FloatTag(), x);
  hn::Store(b, FloatTag(), y);
  hn::Store(c, FloatTag(), z);
  for (int lane = 0; lane < kWidth; ++lane) z[lane] = std::fma(x[lane], y[lane], z[lane]);
  return hn::Load(FloatTag(), z);
#else
  return hn::MulAdd(a, b, c);
#endif
}

// a * b + c with one rounding.
HWY_INLINE Floats fma(const Floats& a, const Floats& b, const Floats& c) {
  DRAMA3_EACH_PART(Floats, fused_part(a.part[i], b.part[i], c.part[i]));
}

// ---- comparison; a NaN compares false, so max(NaN, b) is b ----

HWY_INLINE Mask less(const Floats& a, const Floats& b) {
  DRAMA3_EACH_PART(Mask, hn::Lt(a.part[i], b.part[i]));
}
HWY_INLINE Mask equal(const Floats& a, const Floats& b) {
  DRAMA3_EACH_PART(Mask, hn::Eq(a.part[i], b.part[i]));
}
HWY_INLINE Floats select(const Mask& mask, const Floats& yes, const Floats& no) {
  DRAMA3_EACH_PART(Floats, hn::IfThenElse(mask.part[i], yes.part[i], no.part[i]));
}
HWY_INLINE Floats max(const Floats& a, const Floats& b) { return select(less(b, a), a, b); }
HWY_INLINE Floats min(const Floats& a, const Floats& b) { return select(less(a, b), a, b); }

// ---- bits ----

HWY_INLINE Ints bits(const Floats& a) { DRAMA3_EACH_PART(Ints, hn::BitCast(IntTag(), a.part[i])); }
HWY_INLINE Floats from_bits(const Ints& a) { DRAMA3_EACH_PART(Floats, hn::BitCast(FloatTag(), a.part[i])); }
HWY_INLINE Ints splat_int(int32_t value) { DRAMA3_EACH_PART(Ints, hn::Set(IntTag(), value)); }
HWY_INLINE Ints operator+(const Ints& a, const Ints& b) {
  DRAMA3_EACH_PART(Ints, hn::Add(a.part[i], b.part[i]));
}
HWY_INLINE Ints operator-(const Ints& a, const Ints& b) {
  DRAMA3_EACH_PART(Ints, hn::Sub(a.part[i], b.part[i]));
}
HWY_INLINE Ints operator&(const Ints& a, const Ints& b) {
  DRAMA3_EACH_PART(Ints, hn::And(a.part[i], b.part[i]));
}
HWY_INLINE Ints operator|(const Ints& a, const Ints& b) {
  DRAMA3_EACH_PART(Ints, hn::Or(a.part[i], b.part[i]));
}
HWY_INLINE Ints operator^(const Ints& a, const Ints& b) {
  DRAMA3_EACH_PART(Ints, hn::Xor(a.part[i], b.part[i]));
}
template <int kBits>
HWY_INLINE Ints shift_left(const Ints& a) {
  DRAMA3_EACH_PART(Ints, hn::ShiftLeft<kBits>(a.part[i]));
}
template <int kBits>  // arithmetic: the sign stays
HWY_INLINE Ints shift_right(const Ints& a) {
  DRAMA3_EACH_PART(Ints, hn::ShiftRight<kBits>(a.part[i]));
}
HWY_INLINE Floats abs(const Floats& a) { return from_bits(bits(a) & splat_int(0x7fffffff)); }
HWY_INLINE Floats negate(const Floats& a) { return from_bits(bits(a) ^ splat_int(INT32_MIN)); }

// ---- weights, sixteen elements at any address, widened exactly ----

HWY_INLINE Floats load_bf16(const uint16_t* from) {
  const hn::Rebind<uint16_t, FloatTag> narrow;
  DRAMA3_EACH_PART(Floats, hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(
                                                       UintTag(), hn::LoadU(narrow, from + i * kWidth)))));
}
HWY_INLINE Floats load_f16(const uint16_t* from) {
  const hn::Rebind<uint16_t, FloatTag> narrow;
  const hn::Rebind<hwy::float16_t, FloatTag> half;
  DRAMA3_EACH_PART(Floats,
                   hn::PromoteTo(FloatTag(), hn::BitCast(half, hn::LoadU(narrow, from + i * kWidth))));
}

// e4m3 codes are read as float16 with the same fraction and an exponent bias of 15 instead of 7, hence as
// value / 256: exact for all finite codes, subnormals included, in three integer operations.
inline constexpr float kE4m3Unit = 256.0f;

// Sixteen e4m3 codes as value / kE4m3Unit. The NaN codes 0x7f and 0xff read as +-480 / kE4m3Unit.
HWY_INLINE Floats load_e4m3(const uint8_t* from) {
  const hn::Rebind<hwy::float16_t, FloatTag> half;
  const int8_t* at = reinterpret_cast<const int8_t*>(from);
  Floats result;
#if HWY_TARGET == HWY_AVX2
  // Sixteen 16-bit lanes fill one register: one widening for both parts.
  const hn::CappedTag<int16_t, 16> wide;
  const auto moved = hn::ShiftLeft<7>(hn::PromoteTo(wide, hn::LoadU(hn::CappedTag<int8_t, 16>(), at)));
  const auto bits = hn::And(moved, hn::Set(wide, static_cast<int16_t>(0xbfff)));
  const hn::Half<decltype(wide)> part;
  result.part[0] = hn::PromoteTo(FloatTag(), hn::BitCast(half, hn::LowerHalf(part, bits)));
  result.part[1] = hn::PromoteTo(FloatTag(), hn::BitCast(half, hn::UpperHalf(part, bits)));
#else
  const hn::Rebind<int8_t, FloatTag> codes;
  const hn::Rebind<int16_t, FloatTag> wide;
  for (int i = 0; i < kParts; ++i) {
    const auto moved = hn::ShiftLeft<7>(hn::PromoteTo(wide, hn::LoadU(codes, at + i * kWidth)));
    const auto bits = hn::And(moved, hn::Set(wide, static_cast<int16_t>(0xbfff)));
    result.part[i] = hn::PromoteTo(FloatTag(), hn::BitCast(half, bits));
  }
#endif
  return result;
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
// The same codes as value * kTinyE4m3: their fields moved to where a float has them, so that subnormal codes
// are subnormal floats and the exponent bias is wrong by 120. Fewer and cheaper instructions than through
// float16, where the CPU multiplies subnormal floats at full speed.
inline constexpr float kTinyE4m3 = 0x1p-120f;

HWY_INLINE Floats load_tiny_e4m3(const uint8_t* from) {
  const hn::Repartition<uint8_t, FloatTag> bytes;
  const auto fields = hn::Set(IntTag(), static_cast<int32_t>(0x87f00000));
  const auto codes = hn::LoadDup128(bytes, from);
  Floats result;
  // Each code goes to a byte that ends where a part's lane or, for the lower part of AVX2, its lower half
  // ends; what fills the other bytes is masked off.
#if HWY_TARGET == HWY_AVX2
  HWY_ALIGN static constexpr uint8_t kOrder[32] = {0, 0, 0, 8,  0, 1, 0, 9,  0, 2, 0, 10, 0, 3, 0, 11,
                                                   0, 4, 0, 12, 0, 5, 0, 13, 0, 6, 0, 14, 0, 7, 0, 15};
  const hn::CappedTag<int16_t, 16> half_lanes;
  const auto placed = hn::BitCast(half_lanes, hn::TableLookupBytes(codes, hn::Load(bytes, kOrder)));
  const auto moved = hn::BitCast(IntTag(), hn::ShiftRight<4>(placed));
  result.part[0] = hn::BitCast(FloatTag(), hn::And(hn::ShiftLeft<16>(moved), fields));
  result.part[1] = hn::BitCast(FloatTag(), hn::And(moved, fields));
#else
  HWY_ALIGN static constexpr uint8_t kOrder[64] = {
      0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2,  0, 0, 0, 3,  0, 0, 0, 4,  0, 0, 0, 5,  0, 0, 0, 6,  0, 0, 0, 7,
      0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0, 13, 0, 0, 0, 14, 0, 0, 0, 15};
  const auto placed = hn::BitCast(IntTag(), hn::TableLookupBytes(codes, hn::Load(bytes, kOrder)));
  result.part[0] = hn::BitCast(FloatTag(), hn::And(hn::ShiftRight<4>(placed), fields));
#endif
  return result;
}
#endif

#undef DRAMA3_EACH_PART

// ---- folds ----

// The sum of the lanes, by halves.
HWY_INLINE float fold_sum(const Floats& value) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  float lane[kLanes];
  store(value, lane);
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
#else
  FloatPart part[kParts];
  for (int i = 0; i < kParts; ++i) part[i] = value.part[i];
  for (int half = kParts / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) part[i] = hn::Add(part[i], part[i + half]);
  }
#if HWY_TARGET == HWY_NEON
  const auto by4 = part[0];
#else
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 8> eight;
#if HWY_TARGET == HWY_AVX2
  const auto by8 = part[0];
#else
  const auto by8 = hn::Add(hn::LowerHalf(eight, part[0]), hn::UpperHalf(eight, part[0]));
#endif
  const auto by4 = hn::Add(hn::LowerHalf(four, by8), hn::UpperHalf(four, by8));
#endif
  const auto by2 = hn::Add(by4, hn::Shuffle1032(by4));
  return hn::GetLane(hn::Add(by2, hn::Shuffle2301(by2)));
#endif
}

// The greatest lane; no lane is NaN.
HWY_INLINE float fold_max(const Floats& value) {
  float lane[kLanes];
  store(value, lane);
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] = lane[i + half] > lane[i] ? lane[i + half] : lane[i];
  }
  return lane[0];
}

}  // namespace HWY_NAMESPACE
}  // namespace drama3
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
