// FP8 rounding, routing and routed experts: the CPU backend against the definition, grouped against alone.
#include "tests/ops/stored_weights.h"

using namespace drama3;
using namespace drama3::test;

namespace {

// A mixture with its own weights.
struct Mixture {
  std::vector<StoredLinear> stored;
  MoeMix mix;

  Mixture(int64_t experts, int64_t top_k, int64_t hidden, int64_t ffn, DType type) {
    mix.experts.hidden = hidden;
    mix.experts.ffn = ffn;
    mix.top_k = top_k;
    for (int64_t e = 0; e < experts; ++e) {
      const uint32_t seed = static_cast<uint32_t>(10 * e + 1);
      stored.emplace_back(ffn, hidden, type, seed, e % 2 == 0 ? DType::kF32 : DType::kBF16);
      stored.emplace_back(ffn, hidden, type, seed + 2);
      stored.emplace_back(hidden, ffn, type, seed + 4);
      const size_t at = stored.size();
      mix.experts.each.push_back({stored[at - 3].linear(), stored[at - 2].linear(), stored[at - 1].linear()});
    }
  }
};

std::vector<float> run_experts(Ops& ops, const Mixture& mixture, int64_t rows, int64_t cut,
                               const MoeReplay& replay = {}) {
  const MoeMix& mix = mixture.mix;
  const int64_t hidden = mix.experts.hidden;
  const FloatRows in = random_rows(rows, hidden, 1);
  const FloatRows logits = random_rows(rows, static_cast<int64_t>(mix.experts.each.size()), 2, 3.0f);
  const FloatRows out = random_rows(rows, hidden, 3), weights = random_rows(rows, mix.top_k, 4);
  const Rows<int32_t> indices = int_rows(rows, mix.top_k);
  const Buffer workspace = ops.allocate(DType::kU8, Shape{ops.expert_workspace(mix, cut)});
  ops.fill(workspace.view, 0xff);  // NaN everywhere: nothing may be read before it is written
  for (int64_t row = 0; row < rows; row += cut) {
    const int64_t count = std::min(cut, rows - row);
    const Routing routing{indices.view().rows_from(row, count), weights.view().rows_from(row, count)};
    MoeReplay part = replay;
    if (!replay.forced_indices.empty()) part.forced_indices = replay.forced_indices.rows_from(row, count);
    ops.route(routing, logits.view().rows_from(row, count), mix, part);
    ops.expert_ffn(out.view().rows_from(row, count), in.view().rows_from(row, count), routing, mix, part,
                   workspace.view);
  }
  std::vector<float> all = out.values(), chosen = weights.values();
  all.insert(all.end(), chosen.begin(), chosen.end());
  for (int64_t i = 0; i < rows * mix.top_k; ++i)
    all.push_back(static_cast<float>(indices.view().row<int32_t>(0)[i]));
  return all;
}

// Every entry may differ by what rounding makes of the largest one.
std::vector<float> largest_terms(const std::vector<float>& values) {
  float largest = 0.0f;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  return std::vector<float>(values.size(), largest);
}

}  // namespace

TEST_CASE("quantize_rows gives the definition's codes and scales exactly") {
  for (const int64_t cols : kWidths) {
    FloatRows in = random_rows(6, cols, 1);
    float range = 1e-12f;  // rows from below the smallest scale to large
    for (int64_t r = 0; r < 6; ++r, range *= 1e4f) {
      for (int64_t c = 0; c < cols; ++c) in.view().row<float>(r)[c] *= r == 2 ? 0.0f : range;
    }
    in.view().row<float>(5)[0] = -3e38f;
    const Body body = [&](Ops& ops) {
      const int64_t groups = (cols + 127) / 128;
      FloatRows scales = random_rows(6, groups, 2);
      Rows<uint8_t> codes(6, cols, DType::kF8E4M3);
      ops.quantize_rows(codes.view(), scales.view(), in.view());
      std::vector<float> all = scales.values();
      for (const uint8_t code : codes) all.push_back(code);
      return all;
    };
    RefOps ref;
    INFO("cols ", cols);
    CHECK(same_bits(cpu_result(body), body(ref)));
  }
}

TEST_CASE("every midpoint between two e4m3 numbers rounds to the even code") {
  FloatRows in = random_rows(1, 128, 1);
  for (int code = 0; code < 0x7e; ++code) {
    const float middle =
        (e4m3_to_float(static_cast<uint8_t>(code)) + e4m3_to_float(static_cast<uint8_t>(code + 1))) / 2;
    in.begin()[code] = code % 2 == 0 ? middle : -middle;
  }
  in.begin()[126] = in.begin()[127] = 448.0f;  // the scale is 1
  cpu_result([&](Ops& ops) {
    FloatRows scales = random_rows(1, 1, 2);
    Rows<uint8_t> codes(1, 128, DType::kF8E4M3);
    ops.quantize_rows(codes.view(), scales.view(), in.view());
    for (int code = 0; code < 0x7e; ++code) {
      CHECK((codes.begin()[code] & 0x7f) == (code % 2 == 0 ? code : code + 1));
    }
    return std::vector<float>{};
  });
}

TEST_CASE("route takes equal probabilities by ascending index and renormalises") {
  FloatRows logits = random_rows(2, 20, 1);
  for (float& logit : logits) logit = 1.0f;
  logits.begin()[7] = 2.0f;
  MoeMix mix;
  mix.top_k = 3;
  const Body body = [&](Ops& ops) {
    FloatRows weights = random_rows(2, 3, 2);
    const Rows<int32_t> indices = int_rows(2, 3);
    ops.route({indices.view(), weights.view()}, logits.view(), mix, {});
    const int32_t expected[] = {7, 0, 1, 0, 1, 2};
    for (int i = 0; i < 6; ++i) CHECK(indices.view().row<int32_t>(0)[i] == expected[i]);
    return weights.values();
  };
  check_backends(body, std::vector<float>(6, 1.0f));
}

TEST_CASE("experts agree with the definition where no activation is quantised") {
  for (const DType type : {DType::kBF16, DType::kF8E4M3}) {
    for (const int64_t rows : {1, 5, 40}) {
      INFO(dtype_name(type), ", rows ", rows);
      const Mixture mixture(5, 2, 130, 70, type);
      const MoeReplay replay{.quantize_activations = false, .forced_indices = {}};
      RefOps ref;
      check_backends([&](Ops& ops) { return run_experts(ops, mixture, rows, rows, replay); },
                     largest_terms(run_experts(ref, mixture, rows, rows, replay)));
    }
  }
}

TEST_CASE("quantised experts agree in all rows but those where one code fell the other way") {
  const Mixture mixture(6, 3, 256, 128, DType::kF8E4M3);
  RefOps ref;
  const std::vector<float> expected = run_experts(ref, mixture, 30, 30);
  const std::vector<float> got = cpu_result([&](Ops& ops) { return run_experts(ops, mixture, 30, 30); });
  REQUIRE(got.size() == expected.size());
  int departed = 0;
  for (size_t row = 0; row < 30; ++row) {
    double error = 0.0, size = 0.0;
    for (size_t i = row * 256; i < (row + 1) * 256; ++i) {
      error += (got[i] - expected[i]) * (got[i] - expected[i]);
      size += expected[i] * expected[i];
    }
    CHECK(std::sqrt(error / size) < 5e-3);
    departed += std::sqrt(error / size) > 1e-5;
  }
  CHECK(departed <= 3);
}

TEST_CASE("forced routing keeps the weights that the logits give") {
  const Mixture mixture(4, 2, 64, 32, DType::kBF16);
  Rows<int32_t> forced = int_rows(3, 2);
  const int32_t choice[] = {3, 0, 1, 2, 2, 3};
  std::copy_n(choice, 6, forced.begin());
  const MoeReplay replay{.quantize_activations = true, .forced_indices = forced.view()};
  RefOps ref;
  check_backends([&](Ops& ops) { return run_experts(ops, mixture, 3, 3, replay); },
                 largest_terms(run_experts(ref, mixture, 3, 3, replay)));
}

TEST_CASE("a row's experts give the same bits alone and grouped with any other rows") {
  const Mixture mixture(6, 3, 256, 128, DType::kF8E4M3);
  const std::vector<float> whole = cpu_result([&](Ops& ops) { return run_experts(ops, mixture, 128, 128); });
  for (const int64_t cut : kCuts) {
    INFO("calls of ", cut);
    CHECK(same_bits(cpu_result([&](Ops& ops) { return run_experts(ops, mixture, 128, cut); }), whole));
  }
}
