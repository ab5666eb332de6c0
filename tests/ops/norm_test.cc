// RMS norms: the CPU backend against the definition, in place, and the fused residual sum.
#include "tests/ops/backends.h"

using namespace drama3;
using namespace drama3::test;

namespace {

// A norm's terms: its result, since the sum of squares has no cancellation.
std::vector<float> sizes_of(const Body& body) {
  RefOps ref;
  std::vector<float> sizes = body(ref);
  for (float& size : sizes) size = std::fabs(size);
  return sizes;
}

}  // namespace

TEST_CASE("rms_norm agrees with the definition at every width") {
  for (const int64_t cols :
       {int64_t{1}, int64_t{15}, int64_t{16}, int64_t{17}, int64_t{129}, int64_t{2048}}) {
    for (const int64_t rows : {0, 1, 5}) {
      INFO(rows, " x ", cols);
      const FloatRows in = random_rows(rows, cols, 1), weight = random_rows(1, cols, 2);
      const Body body = [&](Ops& ops) {
        FloatRows out = random_rows(rows, cols, 3);
        ops.rms_norm(out.view(), in.view(), {weight.view(), 1e-6f});
        return out.values();
      };
      check_backends(body, sizes_of(body));
    }
  }
}

TEST_CASE("rms_norm works in place and on a column slice") {
  const FloatRows weight = random_rows(1, 40, 2);
  const Body body = [&](Ops& ops) {
    FloatRows rows = random_rows(3, 100, 1);
    const View slice = rows.view().cols_from(7, 40);
    ops.rms_norm(slice, slice, {weight.view(), 1e-6f});
    return rows.values();
  };
  check_backends(body, sizes_of(body));
}

TEST_CASE("add_rms_norm is add, then rms_norm, bit for bit") {
  const FloatRows delta = random_rows(5, 130, 1), weight = random_rows(1, 130, 2);
  const auto run = [&](Ops& ops, bool fused) {
    FloatRows sum = random_rows(5, 130, 3), out = random_rows(5, 130, 4);
    const Norm norm{weight.view(), 1e-6f};
    if (fused) {
      ops.add_rms_norm(out.view(), sum.view(), delta.view(), norm);
    } else {
      ops.Ops::add_rms_norm(out.view(), sum.view(), delta.view(), norm);
    }
    std::vector<float> all = out.values(), carried = sum.values();
    all.insert(all.end(), carried.begin(), carried.end());
    return all;
  };
  CHECK(same_bits(cpu_result([&](Ops& ops) { return run(ops, true); }),
                  cpu_result([&](Ops& ops) { return run(ops, false); })));
  const Body fused = [&](Ops& ops) { return run(ops, true); };
  check_backends(fused, sizes_of(fused));
}

TEST_CASE("gated_rms_norm norms each head and multiplies silu of z") {
  for (const int64_t width : {int64_t{1}, int64_t{17}, int64_t{128}}) {
    const FloatRows in = random_rows(4, 3 * width, 1), z = random_rows(4, 3 * width, 2, 8.0f);
    const FloatRows weight = random_rows(1, width, 3);
    const Body body = [&](Ops& ops) {
      FloatRows out = random_rows(4, 3 * width, 4);
      ops.gated_rms_norm(out.view(), in.view(), z.view(), {weight.view(), 1e-6f});
      return out.values();
    };
    check_backends(body, sizes_of(body));
  }
}
