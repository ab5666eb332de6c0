// Attention over linear and ring caches: the CPU backend against the definition, and cuts against each other.
#include "tests/ops/backends.h"

using namespace drama3;
using namespace drama3::test;

namespace {

struct Case {
  AttendDims dims;
  int64_t rotary = 0;
  bool interleaved = false;
  bool normed = true;
  bool gated = true;
  int64_t slots = 0;
};

std::vector<float> run_attention(Ops& ops, const Case& c, int64_t rows, int64_t cut, int64_t start = 0) {
  const int64_t head_dim = c.dims.head_dim, width = c.dims.heads * head_dim, kv = c.dims.kv_heads * head_dim;
  const FloatRows query = random_rows(rows, 2 * width, 1), key = random_rows(rows, kv, 2);
  const FloatRows value = random_rows(rows, kv, 3), gain = random_rows(1, head_dim, 4);
  const FloatRows angles = random_rows(start + rows, c.rotary / 2, 5, 3.0f);
  FloatRows cos = angles, sin = angles;
  for (float& x : cos) x = std::cos(x);
  for (float& x : sin) x = std::sin(x);
  const FloatRows keys = random_rows(c.slots, kv, 6), values = random_rows(c.slots, kv, 7);
  const FloatRows scratch_query = random_rows(cut, width, 8), scratch_key = random_rows(cut, kv, 9);
  const FloatRows out = random_rows(rows, width, 10);
  const Rows<int32_t> position = int_rows(1, 1, static_cast<int32_t>(start));
  const KvCache cache{keys.view(), values.view()};
  const HeadLayout queries{.heads = c.dims.heads, .head_dim = head_dim, .stride = 2 * head_dim, .offset = 0};
  HeadLayout gates = queries;
  gates.offset = head_dim;
  const Norm norm{c.normed ? gain.view() : View{}, 1e-6f};
  for (int64_t row = 0; row < rows; row += cut) {
    const int64_t count = std::min(cut, rows - row);
    const AttentionMix mix{.query = query.view().rows_from(row, count),
                           .key = key.view().rows_from(row, count),
                           .value = value.view().rows_from(row, count),
                           .query_layout = queries,
                           .query_norm = norm,
                           .key_norm = norm,
                           .rope = {cos.view(), sin.view(), c.rotary, c.interleaved},
                           .dims = c.dims,
                           .gate = c.gated ? query.view().rows_from(row, count) : View{},
                           .gate_layout = gates};
    ops.attention_mix(out.view().rows_from(row, count), mix, cache, position.view(),
                      {scratch_query.view().rows_from(0, count), scratch_key.view().rows_from(0, count)});
    ops.advance(position.view(), count);
  }
  std::vector<float> all = out.values();
  for (const FloatRows* part : {&keys, &values}) {
    const std::vector<float> more = part->values();
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

const Case kPlain{
    .dims = {.heads = 4, .kv_heads = 2, .head_dim = 24, .scale = 0.2f}, .rotary = 8, .slots = 160};
const Case kWindowed{.dims = {.heads = 4, .kv_heads = 4, .head_dim = 16, .window = 10, .scale = 0.25f},
                     .rotary = 16,
                     .interleaved = true,
                     .normed = false,
                     .gated = false,
                     .slots = 150};
const Case kBackbone{
    .dims = {.heads = 16, .kv_heads = 2, .head_dim = 256, .scale = 0.0625f}, .rotary = 64, .slots = 128};
const Case kTower{.dims = {.heads = 32, .kv_heads = 8, .head_dim = 128, .scale = 0.0883883f},
                  .rotary = 64,
                  .interleaved = true,
                  .gated = false,
                  .slots = 128};

}  // namespace

TEST_CASE("attention_mix agrees with the definition") {
  for (const Case& c : {kPlain, kWindowed, kBackbone, kTower}) {
    for (const int64_t rows : {1, 3, 70}) {
      INFO("heads ", c.dims.heads, ", head_dim ", c.dims.head_dim, ", rows ", rows);
      RefOps ref;
      std::vector<float> terms = run_attention(ref, c, rows, rows);
      for (float& term : terms) term = 2 + std::fabs(term);  // values lie in [-1, 1), weights sum to 1
      check_backends([&](Ops& ops) { return run_attention(ops, c, rows, rows); }, terms);
    }
  }
}

TEST_CASE("attention without RoPE leaves the heads unturned") {
  Case c = kPlain;
  c.rotary = 0;
  c.normed = false;
  RefOps ref;
  const std::vector<float> expected = run_attention(ref, c, 5, 5);
  check_backends([&](Ops& ops) { return run_attention(ops, c, 5, 5); },
                 std::vector<float>(expected.size(), 2.0f));
}

TEST_CASE("a windowed cache forgets what lies before the window") {
  // At a late start every visible position but the call's own comes from the ring's slots.
  RefOps ref;
  const std::vector<float> expected = run_attention(ref, kWindowed, 20, 20, 1000);
  check_backends([&](Ops& ops) { return run_attention(ops, kWindowed, 20, 20, 1000); },
                 std::vector<float>(expected.size(), 2.0f));
}

TEST_CASE("attention and caches have the same bits however rows are cut into calls") {
  for (const Case& c : {kPlain, kWindowed}) {
    const std::vector<float> whole = cpu_result([&](Ops& ops) { return run_attention(ops, c, 128, 128); });
    for (const int64_t cut : kCuts) {
      INFO("calls of ", cut);
      CHECK(same_bits(cpu_result([&](Ops& ops) { return run_attention(ops, c, 128, cut); }), whole));
    }
  }
}
