// Codec ops: the CPU backend against the reference, and against itself over instruction sets, threads and
// chunkings.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/targets.h"
#include "kernels/ref/ref_ops.h"
#include "lib/base/error.h"

using namespace drama3;

namespace {

constexpr float kEpsilon = 0x1p-23f;

std::vector<float> random_values(int64_t count, uint32_t seed, float range = 1.0f) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = range * (static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f);
  return values;
}

std::vector<float> absolute(std::vector<float> values) {
  for (float& value : values) value = std::fabs(value);
  return values;
}

View view_of(const std::vector<float>& values, const Shape& shape) {
  return {const_cast<float*>(values.data()), DType::kF32, shape};
}

// Restores the best instruction set.
struct BestSet {
  ~BestSet() { select_instruction_set(""); }
};

struct ConvCase {
  int64_t in, out, kernel, dilation, stride;
  bool depthwise;
};

struct ConvInputs {
  std::vector<float> weight, bias, rows, tail;
};

ConvInputs inputs_of(const ConvCase& c, int64_t rows, int64_t history) {
  return {random_values(c.out * (c.depthwise ? 1 : c.in) * c.kernel, 1), random_values(c.out, 2),
          random_values(rows * c.in, 3), random_values(history * c.in, 4)};
}

struct ConvResult {
  std::vector<float> rows, tail;
  bool operator==(const ConvResult& other) const {
    return rows.size() == other.rows.size() && tail == other.tail &&
           std::memcmp(rows.data(), other.rows.data(), rows.size() * sizeof(float)) == 0;
  }
};

// Runs the rows in calls of at most `chunk` rows.
ConvResult run_conv(Ops& ops, const ConvCase& c, const ConvInputs& inputs, int64_t rows, int64_t chunk) {
  const Conv sizes{.in = c.in,
                   .out = c.out,
                   .kernel = c.kernel,
                   .dilation = c.dilation,
                   .stride = c.stride,
                   .depthwise = c.depthwise};
  const Shape shape{c.out, c.depthwise ? 1 : c.in, c.kernel};
  const Conv conv =
      ops.prepare_conv({view_of(inputs.weight, shape), view_of(inputs.bias, Shape{c.out})}, sizes);
  ConvResult result{std::vector<float>(static_cast<size_t>(rows / c.stride * c.out), NAN), inputs.tail};
  const View in = view_of(inputs.rows, Shape{rows, c.in});
  const View out = view_of(result.rows, Shape{rows / c.stride, c.out});
  const View tail = conv.history() == 0 ? View{} : view_of(result.tail, Shape{conv.history(), c.in});
  for (int64_t row = 0; row < rows; row += chunk) {
    const int64_t count = std::min(chunk, rows - row);
    ops.conv(out.rows_from(row / c.stride, count / c.stride), in.rows_from(row, count), conv, tail);
  }
  return result;
}

ConvResult run_transpose(Ops& ops, const ConvCase& c, const ConvInputs& inputs, int64_t rows, int64_t chunk) {
  const ConvTranspose sizes{.in = c.in, .out = c.out, .kernel = c.kernel, .stride = c.stride};
  const ConvTranspose conv = ops.prepare_conv_transpose(
      {view_of(inputs.weight, Shape{c.in, c.out, c.kernel}), view_of(inputs.bias, Shape{c.out})}, sizes);
  ConvResult result{std::vector<float>(static_cast<size_t>(rows * c.stride * c.out), NAN), inputs.tail};
  const View in = view_of(inputs.rows, Shape{rows, c.in});
  const View out = view_of(result.rows, Shape{rows * c.stride, c.out});
  const View tail = conv.history() == 0 ? View{} : view_of(result.tail, Shape{conv.history(), c.in});
  for (int64_t row = 0; row < rows; row += chunk) {
    const int64_t count = std::min(chunk, rows - row);
    ops.conv_transpose(out.rows_from(row * c.stride, count * c.stride), in.rows_from(row, count), conv, tail);
  }
  return result;
}

// Both backends agree within one epsilon each times the sum of the terms' sizes; the CPU's bits never change.
template <typename Run>
void check_conv(const ConvCase& c, int64_t rows, int64_t history, const Run& run) {
  INFO("in ", c.in, ", out ", c.out, ", kernel ", c.kernel, ", dilation ", c.dilation, ", stride ", c.stride,
       ", rows ", rows);
  const ConvInputs inputs = inputs_of(c, rows, history);
  const ConvInputs sizes{absolute(inputs.weight), absolute(inputs.bias), absolute(inputs.rows),
                         absolute(inputs.tail)};
  RefOps ref;
  const ConvResult expected = run(ref, c, inputs, rows, rows);
  const ConvResult bound = run(ref, c, sizes, rows, rows);
  CpuOps one(1), three(3);
  const ConvResult got = run(one, c, inputs, rows, rows);
  CHECK(got.tail == expected.tail);
  for (size_t i = 0; i < expected.rows.size(); ++i) {
    REQUIRE(std::fabs(got.rows[i] - expected.rows[i]) <= 2 * kEpsilon * bound.rows[i]);
  }
  CHECK(run(three, c, inputs, rows, rows) == got);
  CHECK(run(one, c, inputs, rows, c.stride) == got);
  CHECK(run(ref, c, inputs, rows, c.stride) == expected);
  const BestSet best;
  for (const std::string& set : instruction_sets()) {
    select_instruction_set(set);
    CHECK_MESSAGE(run(one, c, inputs, rows, rows) == got, set);
  }
}

}  // namespace

TEST_CASE("a convolution on the CPU equals the reference for all shapes, and itself for every chunking") {
  const ConvCase cases[] = {{1, 1, 1, 1, 1, false},   {1, 5, 7, 1, 1, false},   {3, 16, 7, 3, 1, false},
                            {16, 17, 7, 9, 1, false}, {17, 15, 3, 1, 1, false}, {300, 33, 2, 1, 1, false},
                            {600, 8, 1, 1, 1, false}, {32, 1, 7, 1, 1, false},  {100, 48, 7, 1, 1, false},
                            {16, 32, 4, 1, 2, false}, {5, 10, 16, 1, 8, false}, {64, 64, 2, 1, 2, false},
                            {1, 1, 7, 1, 1, true},    {16, 16, 7, 1, 1, true},  {37, 37, 7, 1, 1, true}};
  for (const ConvCase& c : cases) {
    const int64_t history = (c.kernel - 1) * c.dilation - (c.stride - 1);
    for (const int64_t outs : {1, 2, 5, 8, 13, 40}) check_conv(c, outs * c.stride, history, run_conv);
  }
}

TEST_CASE("a transposed convolution on the CPU equals the reference for all shapes") {
  const ConvCase cases[] = {{1, 1, 2, 1, 2, false},   {3, 1, 2, 1, 1, false},   {3, 5, 4, 1, 2, false},
                            {16, 8, 16, 1, 8, false}, {33, 17, 8, 1, 4, false}, {64, 64, 2, 1, 2, false},
                            {300, 4, 9, 1, 3, false}};
  for (const ConvCase& c : cases) {
    for (const int64_t rows : {1, 2, 5, 8, 40}) check_conv(c, rows, c.kernel / c.stride - 1, run_transpose);
  }
}

TEST_CASE("a fused residual unit has the bits of its composition") {
  for (const int64_t channels : {4, 16, 24}) {
    for (const int64_t rows : {1, 31, 32, 33, 200}) {
      CpuOps ops(2);
      const auto alpha = absolute(random_values(channels, 5, 2.0f));
      const auto weight = random_values(channels * channels * 7, 6, 0.3f);
      const auto bias = random_values(channels, 7);
      const View biases = view_of(bias, Shape{channels});
      const Snake snake{ops.prepare_vector(view_of(alpha, Shape{channels}), 0.0f)};
      const ResidualUnit unit{snake,
                              ops.prepare_conv({view_of(weight, Shape{channels, channels, 7}), biases},
                                               {.in = channels, .out = channels, .kernel = 7, .dilation = 3}),
                              snake,
                              ops.prepare_conv({view_of(weight, Shape{channels, channels, 1}), biases},
                                               {.in = channels, .out = channels})};
      std::vector<float> results[2], tails[2];
      for (const bool fused : {false, true}) {
        std::vector<float>& values = results[fused];
        values = random_values(rows * channels, 8);
        tails[fused] = random_values(18 * channels, 9);
        std::vector<float> spare0(values.size(), NAN), spare1(values.size(), NAN);
        const Shape shape{rows, channels};
        const View x = view_of(values, shape), tail = view_of(tails[fused], Shape{18, channels});
        if (fused) {
          ops.residual_unit(x, x, unit, tail, view_of(spare0, shape), view_of(spare1, shape));
        } else {
          ops.Ops::residual_unit(x, x, unit, tail, view_of(spare0, shape), view_of(spare1, shape));
        }
      }
      CHECK(results[0] == results[1]);
      CHECK(tails[0] == tails[1]);
    }
  }
}

TEST_CASE("elementwise ops and layer norm on the CPU equal the reference") {
  RefOps ref;
  CpuOps one(1), three(3);
  for (const int64_t cols : {1, 15, 16, 17, 100}) {
    for (const int64_t rows : {1, 3, 64}) {
      INFO(rows, " x ", cols);
      const Shape shape{rows, cols};
      const auto x = random_values(rows * cols, 1, 6.0f), y = random_values(rows * cols, 2);
      const auto gain = random_values(cols, 3), shift = random_values(cols, 4);
      const auto alpha = absolute(random_values(cols, 5, 2.0f));
      const auto run = [&](Ops& ops, int op) {
        std::vector<float> values(x.size(), NAN);
        const View out = view_of(values, shape), in = view_of(x, shape);
        const View gains = view_of(gain, Shape{cols});
        if (op == 0) ops.snake(out, in, {view_of(alpha, Shape{cols})});
        if (op == 1) ops.gelu(out, in);
        if (op == 2) ops.tanh(out, in);
        if (op == 3) ops.scaled_add(out, in, view_of(y, shape), gains);
        if (op == 4) ops.layer_norm(out, in, gains, view_of(shift, Shape{cols}), 1e-6f);
        return values;
      };
      // Of one rounding of the largest intermediate: sin^2 / alpha, x, 1, x + y, and a normed value of at
      // most sqrt(cols).
      for (int op = 0; op < 5; ++op) {
        const auto expected = run(ref, op), got = run(one, op);
        for (size_t i = 0; i < got.size(); ++i) {
          const float a = alpha[i % alpha.size()];
          const float scale = op == 0   ? std::fabs(x[i]) + 2.0f / a + 6.0f
                              : op == 1 ? std::fabs(x[i])
                              : op == 2 ? 1.0f
                              : op == 3 ? 8.0f
                                        : 4.0f + 2.0f * std::sqrt(static_cast<float>(cols));
          REQUIRE_MESSAGE(std::fabs(got[i] - expected[i]) <= 2 * kEpsilon * scale, op, " at ", i, ": ",
                          got[i], " for ", expected[i]);
        }
        CHECK(run(three, op) == got);
        const BestSet best;
        for (const std::string& set : instruction_sets()) {
          select_instruction_set(set);
          CHECK_MESSAGE(run(one, op) == got, set, " ", op);
        }
      }
    }
  }
}

TEST_CASE("the nearest entry is the one of highest cosine, the first of equals, also for zero rows") {
  RefOps ops;
  const std::vector<float> table = {3, 0, 0, 2, 0, 5, -1, -1, 0, 0};  // (3,0) (0,2) (0,5) (-1,-1) (0,0)
  const std::vector<float> rows = {1, 0.9f, 0.1f, 9, -2, -3, 0, 0, -1, 0.9f};
  std::vector<int32_t> codes(5, -1);
  ops.nearest(View(codes.data(), DType::kI32, Shape{5, 1}), view_of(rows, Shape{5, 2}),
              view_of(table, Shape{5, 2}));
  CHECK(codes == std::vector<int32_t>{0, 1, 3, 0, 1});
}
