// Sine and cosine in double precision from plain arithmetic: the same bits on every machine, unlike libm's.
#pragma once

namespace drama3 {

struct SineCosine {
  double sine;
  double cosine;
};

// sin(x) and cos(x) within 1e-15 for |x| <= 2^22 (RoPE angles: position times a frequency of at most 1).
SineCosine sine_cosine(double x);

}  // namespace drama3
