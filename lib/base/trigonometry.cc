// Range reduction to [-pi/4, pi/4] in three steps, then Taylor sums.
#include "lib/base/trigonometry.h"

#include <cmath>

namespace drama3 {
namespace {

// pi/2 in three parts; the first two have 30 significant bits, so that quadrant * part is exact.
constexpr double kHalfPi0 = 0x1.921fb54p+0;
constexpr double kHalfPi1 = 0x1.10b46118p-30;
constexpr double kHalfPi2 = 0x1.313198a2e037p-61;

// sum of terms[i] * x^i.
template <int kTerms>
double polynomial(const double (&terms)[kTerms], double x) {
  double sum = terms[kTerms - 1];
  for (int i = kTerms - 2; i >= 0; --i) sum = sum * x + terms[i];
  return sum;
}

// 1/n! with alternating sign: of x^(2i+1) / x and of x^(2i).
constexpr double kSine[] = {1.0,
                            -1.0 / 6,
                            1.0 / 120,
                            -1.0 / 5040,
                            1.0 / 362880,
                            -1.0 / 39916800,
                            1.0 / 6227020800.0,
                            -1.0 / 1307674368000.0,
                            1.0 / 355687428096000.0};
constexpr double kCosine[] = {1.0,
                              -1.0 / 2,
                              1.0 / 24,
                              -1.0 / 720,
                              1.0 / 40320,
                              -1.0 / 3628800,
                              1.0 / 479001600,
                              -1.0 / 87178291200.0,
                              1.0 / 20922789888000.0};

}  // namespace

SineCosine sine_cosine(double x) {
  const double quadrant = std::floor(x * 0.63661977236758134308 + 0.5);
  const double rest = ((x - quadrant * kHalfPi0) - quadrant * kHalfPi1) - quadrant * kHalfPi2;
  const double square = rest * rest;
  const double sine = rest * polynomial(kSine, square);
  const double cosine = polynomial(kCosine, square);
  switch (static_cast<long long>(quadrant) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace drama3
