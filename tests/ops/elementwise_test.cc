// Elementwise ops of backbone and tower: the CPU backend against the definition.
#include "tests/ops/backends.h"

using namespace drama3;
using namespace drama3::test;

TEST_CASE("add is exact") {
  for (const int64_t cols : kWidths) {
    const FloatRows a = random_rows(3, cols, 1), b = random_rows(3, cols, 2);
    check_backends(
        [&](Ops& ops) {
          FloatRows out = random_rows(3, cols, 3);
          ops.add(out.view(), a.view(), b.view());
          return out.values();
        },
        std::vector<float>(static_cast<size_t>(3 * cols), 0.0f));
  }
}

TEST_CASE("swiglu agrees from underflow to overflow of the exponential") {
  for (const int64_t cols : {int64_t{0}, int64_t{1}, int64_t{17}, int64_t{9728}}) {
    const FloatRows gate = random_rows(2, cols, 1, 100.0f), up = random_rows(2, cols, 2);
    std::vector<float> terms;
    for (int64_t i = 0; i < 2 * cols; ++i) {
      const float g = gate.view().row<float>(0)[i];
      terms.push_back(std::fabs(g / (1.0f + std::exp(-g)) * up.view().row<float>(0)[i]));
    }
    check_backends(
        [&](Ops& ops) {
          FloatRows out = gate;
          ops.swiglu(out.view(), out.view(), up.view());
          return out.values();
        },
        terms);
  }
}

TEST_CASE("sigmoid_gate reads each head where the layout says") {
  const FloatRows values = random_rows(3, 2 * 20, 1), gate = random_rows(3, 100, 2, 10.0f);
  check_backends(
      [&](Ops& ops) {
        FloatRows out = values;
        ops.sigmoid_gate(out.view(), gate.view(), {.heads = 2, .head_dim = 20, .stride = 40, .offset = 20});
        return out.values();
      },
      std::vector<float>(3 * 2 * 20, 1.0f));
}

TEST_CASE("combine_shared opens the shared rows by one gate a row") {
  const FloatRows routed = random_rows(3, 130, 1), shared = random_rows(3, 130, 2);
  const FloatRows gate = random_rows(3, 1, 3, 5.0f);
  check_backends(
      [&](Ops& ops) {
        FloatRows out = random_rows(3, 130, 4);
        ops.combine_shared(out.view(), routed.view(), shared.view(), gate.view());
        return out.values();
      },
      std::vector<float>(3 * 130, 2.0f));
}

TEST_CASE("a NaN stays visible through every elementwise op") {
  cpu_result([&](Ops& ops) {
    FloatRows x = random_rows(1, 20, 1), y = random_rows(1, 20, 2);
    x.begin()[3] = NAN;
    ops.swiglu(x.view(), x.view(), y.view());
    CHECK(std::isnan(x.begin()[3]));
    ops.sigmoid_gate(y.view(), x.view(), {.heads = 1, .head_dim = 20, .stride = 20});
    CHECK(std::isnan(y.begin()[3]));
    return std::vector<float>{};
  });
}
