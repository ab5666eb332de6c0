// Linear layers in every stored type: the CPU backend against the definition, a row alone against a batch.
#include "tests/ops/stored_weights.h"

using namespace drama3;
using namespace drama3::test;

namespace {

struct Case {
  int64_t rows, in, out;
  DType type;
  DType scale_type;
};

std::vector<float> terms_of(const StoredLinear& stored, const FloatRows& in, int64_t rows) {
  const Linear& linear = stored.linear();
  std::vector<float> terms;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < linear.out; ++o) {
      float sum = linear.bias.empty() ? 0.0f : std::fabs(linear.bias.row<float>(0)[o]);
      for (int64_t k = 0; k < linear.in; ++k)
        sum += std::fabs(in.view().row<float>(r)[k] * stored.value(o, k));
      terms.push_back(sum);
    }
  }
  return terms;
}

void check_case(const Case& c, bool biased) {
  INFO(dtype_name(c.type), ", rows ", c.rows, ", in ", c.in, ", out ", c.out);
  StoredLinear stored(c.out, c.in, c.type, 1, c.scale_type);
  const FloatRows bias = random_rows(1, c.out, 2), in = random_rows(c.rows, c.in, 3);
  if (biased) stored.set_bias(bias.view());
  check_backends(
      [&](Ops& ops) {
        FloatRows out = random_rows(c.rows, c.out, 4);
        ops.linear(out.view(), in.view(), stored.linear());
        return out.values();
      },
      terms_of(stored, in, c.rows));
}

}  // namespace

TEST_CASE("linear agrees with the definition in every type and at every width") {
  for (const Case& type :
       {Case{0, 0, 0, DType::kF32, DType::kF32}, Case{0, 0, 0, DType::kF16, DType::kF32},
        Case{0, 0, 0, DType::kBF16, DType::kF32}, Case{0, 0, 0, DType::kF8E4M3, DType::kF32},
        Case{0, 0, 0, DType::kF8E4M3, DType::kBF16}}) {
    for (const int64_t in : kWidths) check_case({3, in, 9, type.type, type.scale_type}, true);
    for (const int64_t out : kWidths) check_case({1, 40, out, type.type, type.scale_type}, false);
    for (const int64_t rows : {0, 2, 5, 9}) check_case({rows, 70, 7, type.type, type.scale_type}, false);
  }
}

TEST_CASE("linear agrees at the model's real sizes") {
  check_case({1, 2048, 9728, DType::kBF16, DType::kF32}, false);
  check_case({2, 9728, 128, DType::kBF16, DType::kF32}, false);
  check_case({2, 2048, 512, DType::kF8E4M3, DType::kBF16}, false);
}

TEST_CASE("every finite e4m3 code is read exactly") {
  std::vector<uint8_t> codes(256);
  for (int code = 0; code < 256; ++code) codes[static_cast<size_t>(code)] = static_cast<uint8_t>(code);
  codes[0x7f] = codes[0xff] = 0;
  float one = 1.0f;
  const View scale(&one, DType::kF32, Shape{1, 1}), weight(codes.data(), DType::kF8E4M3, Shape{256, 1});
  std::vector<float> scales(2, 1.0f);
  const Linear linear{.out = 256,
                      .in = 1,
                      .weight = weight,
                      .scale = View(scales.data(), DType::kF32, Shape{2, 1}),
                      .bias = {},
                      .packed = {}};
  const std::vector<float> got = cpu_result([&](Ops& ops) {
    std::vector<float> out(256);
    ops.linear(View(out.data(), DType::kF32, Shape{1, 256}), View(&one, DType::kF32, Shape{1, 1}), linear);
    return out;
  });
  for (size_t i = 0; i < codes.size(); ++i) CHECK(got[i] == e4m3_to_float(codes[i]));
}

// The CPU backend may read e4m3 in a unit that inputs of 65536 and above would overflow with.
TEST_CASE("one row of inputs of any size meets e4m3 codes of any size exactly") {
  constexpr int64_t kIn = 150, kOut = 6;
  std::vector<uint8_t> codes(static_cast<size_t>(kIn * kOut));
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 37 % 127 + i % 2 * 128);
  std::vector<float> scales(2, 0.5f);
  const Linear linear{.out = kOut,
                      .in = kIn,
                      .weight = View(codes.data(), DType::kF8E4M3, Shape{kOut, kIn}),
                      .scale = View(scales.data(), DType::kF32, Shape{1, 2}),
                      .bias = {},
                      .packed = {}};
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float size : {0x1p-149f, 1e-40f, 1e-30f, 1.0f, 65535.0f, 65536.0f, 1e30f, infinity}) {
    INFO("inputs up to ", size);
    FloatRows in = random_rows(1, kIn, 5, size == infinity ? 1.0f : size);
    if (size == infinity) in.begin()[140] = size;
    const std::vector<float> got = cpu_result([&](Ops& ops) {
      FloatRows out = random_rows(1, kOut, 6);
      ops.linear(out.view(), in.view(), linear);
      return out.values();
    });
    for (int64_t o = 0; o < kOut; ++o) {
      double sum = 0, terms = 0;
      for (int64_t k = 0; k < kIn; ++k) {
        const double term = 0.5 * in.begin()[k] * e4m3_to_float(codes[static_cast<size_t>(o * kIn + k)]);
        sum += term, terms += std::fabs(term);
      }
      INFO("output ", o, " of ", got[static_cast<size_t>(o)], ", expected ", sum);
      if (size == infinity) {
        CHECK(got[static_cast<size_t>(o)] == static_cast<float>(sum));
      } else {
        CHECK(std::fabs(got[static_cast<size_t>(o)] - sum) <= 1e-6 * terms + 0x1p-134);
      }
    }
  }
}

TEST_CASE("a row has the same bits alone and in any batch") {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3}) {
    const StoredLinear stored(100, 300, type, 1);
    const FloatRows in = random_rows(128, 300, 2);
    std::vector<float> whole;
    for (const int64_t cut : kCuts) {
      const std::vector<float> got = cpu_result([&](Ops& ops) {
        FloatRows out = random_rows(128, 100, 3);
        for (int64_t row = 0; row < 128; row += cut) {
          const int64_t count = std::min(cut, 128 - row);
          ops.linear(out.view().rows_from(row, count), in.view().rows_from(row, count), stored.linear());
        }
        return out.values();
      });
      if (whole.empty()) whole = got;
      INFO(dtype_name(type), " in calls of ", cut);
      CHECK(same_bits(got, whole));
    }
  }
}

TEST_CASE("project gives the bits of one linear each") {
  const StoredLinear wide(300, 260, DType::kBF16, 1), narrow(1, 260, DType::kBF16, 2),
      quantised(129, 260, DType::kF8E4M3, 3);
  const FloatRows in = random_rows(20, 260, 4);
  const auto run = [&](Ops& ops, bool fused) {
    FloatRows a = random_rows(20, 300, 5), b = random_rows(20, 1, 6), c = random_rows(20, 129, 7);
    const Projection outs[] = {
        {a.view(), &wide.linear()}, {b.view(), &narrow.linear()}, {c.view(), &quantised.linear()}};
    if (fused) {
      ops.project(outs, in.view());
    } else {
      ops.Ops::project(outs, in.view());
    }
    std::vector<float> all = a.values();
    for (const FloatRows* rows : {&b, &c}) {
      const std::vector<float> more = rows->values();
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  };
  CHECK(same_bits(cpu_result([&](Ops& ops) { return run(ops, true); }),
                  cpu_result([&](Ops& ops) { return run(ops, false); })));
}
