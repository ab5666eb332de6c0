// Elementary functions of sixteen lanes, the same bits on every instruction set: no C library in between.
//
// Polynomials were fitted to the stated error (relative, or absolute where said) and rounded to float.
// NaN in gives NaN out.
#if defined(DRAMA3_KERNELS_CPU_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef DRAMA3_KERNELS_CPU_MATH_INL_H
#undef DRAMA3_KERNELS_CPU_MATH_INL_H
#else
#define DRAMA3_KERNELS_CPU_MATH_INL_H
#endif

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drama3 {
namespace HWY_NAMESPACE {

// c[0] + c[1] x + ... + c[n-1] x^(n-1), by Horner.
template <int kCount>
HWY_INLINE Floats polynomial(const Floats& x, const float (&c)[kCount]) {
  Floats sum = splat(c[kCount - 1]);
  for (int i = kCount - 2; i >= 0; --i) sum = fma(sum, x, splat(c[i]));
  return sum;
}

// The integer nearest to x (|x| < 2^22) as a float plus 1.5 * 2^23, whose low bits hold that integer.
HWY_INLINE Floats to_shifted_integer(const Floats& x) { return x + splat(0x1.8p23f); }
HWY_INLINE Floats shifted_value(const Floats& shifted) { return shifted - splat(0x1.8p23f); }

// e^x within 1.5 ulp; 0 below -104, infinity above 88.73.
HWY_INLINE Floats exp(const Floats& x) {
  const Floats bounded = min(max(x, splat(-105.0f)), splat(89.0f));
  const Floats shifted = to_shifted_integer(bounded * splat(1.44269504f));
  const Floats n = shifted_value(shifted);
  // r = x - n ln 2, ln 2 in two parts of which the first has few bits.
  const Floats r = fma(n, splat(-1.42860677e-6f), fma(n, splat(-0.693145752f), bounded));
  constexpr float kTerms[] = {0.5f, 0.166665167f, 0.0416662022f, 0.00836908817f, 0.00139508338f};
  const Floats power = fma(r * r, polynomial(r, kTerms), r) + splat(1.0f);
  // 2^n in two factors, since n may lie outside of the exponents of normal floats.
  const Ints whole = bits(shifted) - splat_int(0x4b400000);
  const Ints first = shift_right<1>(whole);
  const Ints second = whole - first;
  const Floats scaled = power * from_bits(shift_left<23>(first + splat_int(127))) *
                        from_bits(shift_left<23>(second + splat_int(127)));
  return select(equal(x, x), scaled, x);
}

// 1 / (1 + e^-x).
HWY_INLINE Floats sigmoid(const Floats& x) { return splat(1.0f) / (splat(1.0f) + exp(negate(x))); }

// x / (1 + e^-x).
HWY_INLINE Floats silu(const Floats& x) { return x / (splat(1.0f) + exp(negate(x))); }

// Natural logarithm of a normal positive x.
HWY_INLINE Floats log(const Floats& x) {
  // x = 2^n (1 + t), 1 + t in [sqrt(1/2), sqrt(2)): 0x3f3504f3 are the bits of sqrt(1/2).
  const Ints offset = bits(x) - splat_int(0x3f3504f3);
  const Ints n = shift_right<23>(offset);
  const Floats t = from_bits(bits(x) - shift_left<23>(n)) - splat(1.0f);
  constexpr float kTerms[] = {0.333333105f,  -0.249999836f, 0.200023189f,  -0.166694656f, 0.142167896f,
                              -0.123792261f, 0.118826896f,  -0.118259601f, 0.0693672821f};
  const Floats square = t * t;
  const Floats tail = fma(square * t, polynomial(t, kTerms), splat(-0.5f) * square);
  const Floats whole = shifted_value(from_bits(n + splat_int(0x4b400000)));
  return fma(whole, splat(0.693145752f), fma(whole, splat(1.42860677e-6f), tail) + t);
}

// log(1 + x) for x >= 0, exact to rounding for tiny x too.
HWY_INLINE Floats log1p(const Floats& x) {
  const Floats sum = splat(1.0f) + x;
  const Floats lost = x - (sum - splat(1.0f));
  return log(sum) + lost / sum;
}

// log(1 + e^x), and x itself above 20.
HWY_INLINE Floats softplus(const Floats& x) {
  return select(less(splat(20.0f), x), x, log1p(exp(min(splat(20.0f), x))));
}

// sin x for |x| < 2^17, absolute error 1e-7 near 0 growing with the rounding of x itself.
HWY_INLINE Floats sin(const Floats& x) {
  const Floats shifted = to_shifted_integer(x * splat(0.318309886f));
  const Floats n = shifted_value(shifted);
  // r = x - n pi, pi in two parts.
  const Floats r = fma(n, splat(8.74227766e-8f), fma(n, splat(-3.14159274f), x));
  constexpr float kTerms[] = {-0.166666567f, 0.00833301526f, -0.000198064779f, 2.59975104e-06f};
  const Floats square = r * r;
  const Floats value = fma(square * r, polynomial(square, kTerms), r);
  return from_bits(bits(value) ^ shift_left<31>(bits(shifted)));  // odd multiples of pi change the sign
}

// tanh x within 2 ulp.
HWY_INLINE Floats tanh(const Floats& x) {
  const Floats size = abs(x);
  constexpr float kTerms[] = {-0.333332837f, 0.133314699f, -0.053741619f, 0.0206441283f, -0.00570948841f};
  const Floats square = x * x;
  const Floats small = fma(square * x, polynomial(square, kTerms), x);
  const Floats large = splat(1.0f) - splat(2.0f) / (exp(size + size) + splat(1.0f));
  const Floats signed_large = from_bits(bits(large) | (bits(x) & splat_int(INT32_MIN)));
  return select(less(size, splat(0.625f)), small, signed_large);
}

// erf x, absolute error 1e-7.
HWY_INLINE Floats erf(const Floats& x) {
  const Floats size = abs(x);
  constexpr float kSmall[] = {0.128379166f,   -0.37612626f,     0.112836003f,  -0.0268544443f,
                              0.00518953521f, -0.000802084105f, 7.8891193e-05f};
  const Floats small = fma(x, polynomial(x * x, kSmall), x);
  // 1 - e^-p, p fitted to -log(1 - erf) on [1, 4]; beyond 4 erf is 1 in float.
  constexpr float kLarge[] = {0.000353708921f, 1.12704003f,    0.638225615f,  0.103037439f,
                              -0.0218053516f,  0.00293961586f, -0.0001855749f};
  const Floats large = splat(1.0f) - exp(negate(polynomial(min(size, splat(4.0f)), kLarge)));
  const Floats signed_large = from_bits(bits(large) | (bits(x) & splat_int(INT32_MIN)));
  return select(equal(x, x), select(less(size, splat(1.0f)), small, signed_large), x);
}

}  // namespace HWY_NAMESPACE
}  // namespace drama3
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
