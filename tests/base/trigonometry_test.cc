// Our sine and cosine against the C library's, over the angles RoPE uses.
#include "lib/base/trigonometry.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace drama3;

TEST_CASE("sine and cosine agree with the C library to 1e-15") {
  double worst = 0.0;
  double x = 1e-9;
  for (int i = 0; i < 200000; ++i) {
    const SineCosine ours = sine_cosine(x);
    worst = std::max({worst, std::fabs(ours.sine - std::sin(x)), std::fabs(ours.cosine - std::cos(x))});
    x = x < 30 ? x + 0.00037 : x * 1.00007;
    if (x > 4194304) break;
  }
  CHECK(worst < 1e-15);
  CHECK(sine_cosine(0.0).cosine == 1.0);
  CHECK(sine_cosine(-1.0).sine == -sine_cosine(1.0).sine);
}
