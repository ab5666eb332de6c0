// The gated delta rule: the CPU backend against the definition, and one cut into calls against another.
#include "tests/ops/backends.h"

using namespace drama3;
using namespace drama3::test;

namespace {

void append(std::vector<float>& all, const FloatRows& rows) {
  const std::vector<float> more = rows.values();
  all.insert(all.end(), more.begin(), more.end());
}

// Outputs and both carried states of `rows` rows, run in calls of `cut`.
std::vector<float> run_delta(Ops& ops, const DeltaDims& dims, int64_t rows, int64_t cut) {
  const FloatRows qkv = random_rows(rows, dims.channels(), 1), z = random_rows(rows, dims.values(), 2, 4.0f);
  const FloatRows a = random_rows(rows, dims.value_heads, 3, 3.0f);
  const FloatRows b = random_rows(rows, dims.value_heads, 4, 3.0f);
  const FloatRows conv = random_rows(dims.conv_taps, dims.channels(), 5);
  const FloatRows a_log = random_rows(1, dims.value_heads, 6), dt_bias = random_rows(1, dims.value_heads, 7);
  const FloatRows gain = random_rows(1, dims.value_dim, 8);
  const FloatRows tail = random_rows(dims.conv_taps - 1, dims.channels(), 9);
  const FloatRows memory = random_rows(dims.value_heads * dims.key_dim, dims.value_dim, 10);
  const FloatRows convolved = random_rows(cut, dims.channels(), 11),
                  decay = random_rows(cut, dims.value_heads, 12);
  const FloatRows beta = random_rows(cut, dims.value_heads, 13), read = random_rows(cut, dims.values(), 14);
  const FloatRows out = random_rows(rows, dims.values(), 15);
  const DeltaState state{tail.view(), View(memory.view().data, DType::kF32,
                                           Shape{dims.value_heads, dims.key_dim, dims.value_dim})};
  for (int64_t row = 0; row < rows; row += cut) {
    const int64_t count = std::min(cut, rows - row);
    const DeltaMix mix{.qkv = qkv.view().rows_from(row, count),
                       .z = z.view().rows_from(row, count),
                       .b = b.view().rows_from(row, count),
                       .a = a.view().rows_from(row, count),
                       .conv = conv.view(),
                       .a_log = a_log.view(),
                       .dt_bias = dt_bias.view(),
                       .norm = {gain.view(), 1e-6f},
                       .dims = dims};
    ops.delta_mix(out.view().rows_from(row, count), mix, state,
                  {.conv = convolved.view().rows_from(0, count),
                   .decay = decay.view().rows_from(0, count),
                   .beta = beta.view().rows_from(0, count),
                   .read = read.view().rows_from(0, count)});
  }
  std::vector<float> all = out.values();
  append(all, tail);
  append(all, memory);
  return all;
}

constexpr DeltaDims kSmall{.key_heads = 2, .value_heads = 4, .key_dim = 20, .value_dim = 24, .conv_taps = 4};
constexpr DeltaDims kFull{
    .key_heads = 16, .value_heads = 32, .key_dim = 128, .value_dim = 128, .conv_taps = 4};

}  // namespace

TEST_CASE("delta_mix agrees with the definition") {
  for (const DeltaDims& dims : {kSmall, DeltaDims{1, 1, 1, 1, 2}, DeltaDims{1, 2, 128, 65, 4}, kFull}) {
    for (const int64_t rows : {1, 2, 6}) {
      INFO("key_dim ", dims.key_dim, ", value_dim ", dims.value_dim, ", rows ", rows);
      RefOps ref;
      // The gated norm divides by the root mean square of what was read: a sum's error counts against the
      // largest outputs, not against each one.
      float largest = 0.0f;
      std::vector<float> terms = run_delta(ref, dims, rows, rows);
      for (const float value : terms) largest = std::max(largest, std::fabs(value));
      std::fill(terms.begin(), terms.end(), 4 * largest);
      check_backends([&](Ops& ops) { return run_delta(ops, dims, rows, rows); }, terms);
    }
  }
}

TEST_CASE("conv_silu reads the tail oldest first and leaves the last rows in it") {
  for (const int64_t rows : {0, 1, 2, 3, 9}) {
    const FloatRows in = random_rows(rows, 150, 1), weight = random_rows(4, 150, 2);
    const Body body = [&](Ops& ops) {
      FloatRows tail = random_rows(3, 150, 3), out = random_rows(rows, 150, 4);
      ops.conv_silu(out.view(), in.view(), weight.view(), tail.view());
      std::vector<float> all = out.values();
      append(all, tail);
      return all;
    };
    check_backends(body, std::vector<float>(static_cast<size_t>((rows + 3) * 150), 4.0f));
  }
}

TEST_CASE("delta_gates agree from the deepest softplus to its linear part") {
  constexpr int64_t kHeads = 33;
  const FloatRows a = random_rows(5, kHeads, 1, 40.0f), b = random_rows(5, kHeads, 2, 20.0f);
  const FloatRows a_log = random_rows(1, kHeads, 3, 2.0f), dt_bias = random_rows(1, kHeads, 4);
  check_backends(
      [&](Ops& ops) {
        FloatRows decay = random_rows(5, kHeads, 5), beta = random_rows(5, kHeads, 6);
        DeltaMix mix;
        mix.a = a.view(), mix.b = b.view(), mix.a_log = a_log.view(), mix.dt_bias = dt_bias.view();
        mix.dims.value_heads = kHeads;
        ops.delta_gates(decay.view(), beta.view(), mix);
        std::vector<float> all = decay.values();
        append(all, beta);
        return all;
      },
      std::vector<float>(2 * 5 * kHeads, 1.0f));
}

TEST_CASE("outputs and carried state have the same bits however rows are cut into calls") {
  const std::vector<float> whole = cpu_result([](Ops& ops) { return run_delta(ops, kSmall, 128, 128); });
  for (const int64_t cut : kCuts) {
    INFO("calls of ", cut);
    CHECK(same_bits(cpu_result([&](Ops& ops) { return run_delta(ops, kSmall, 128, cut); }), whole));
  }
  RefOps ref;
  CHECK(same_bits(run_delta(ref, kSmall, 128, 7), run_delta(ref, kSmall, 128, 128)));
}
