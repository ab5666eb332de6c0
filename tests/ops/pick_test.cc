// Draws: the rule on hand-made distributions, and the CPU backend against the definition.
#include "tests/ops/backends.h"

using namespace drama3;
using namespace drama3::test;

namespace {

struct Draw {
  int32_t code = -1;
  int32_t failure = -1;
};

Draw pick(Ops& ops, const FloatRows& logits, Sampling sampling, int32_t frame, int64_t codebook) {
  const Rows<int32_t> code = int_rows(1, 1, -1), frames = int_rows(1, 1, frame), failure = int_rows(1, 1);
  const PickState state{View(&sampling, DType::kU8, Shape{static_cast<int64_t>(sizeof sampling)}),
                        frames.view(), failure.view()};
  ops.pick(code.view(), logits.view(), state, codebook);
  return {*code.view().row<int32_t>(0), *failure.view().row<int32_t>(0)};
}

}  // namespace

TEST_CASE("keep_top keeps entries whose preceding sum is below top_p, then at most top_k") {
  const auto kept = [](float top_p, int32_t top_k) {
    std::vector<Candidate> entries = {{0.1f, 0}, {0.4f, 1}, {0.1f, 2}, {0.4f, 3}};
    const int64_t count = keep_top(entries, {.temperature = 1, .top_p = top_p, .top_k = top_k, .seed = 0});
    std::vector<int32_t> indices;
    float sum = 0.0f;
    for (int64_t i = 0; i < count; ++i) {
      indices.push_back(entries[static_cast<size_t>(i)].index);
      sum += entries[static_cast<size_t>(i)].probability;
    }
    CHECK(sum == doctest::Approx(1.0f));
    return indices;
  };
  CHECK(kept(1.0f, 0) == std::vector<int32_t>{1, 3, 0, 2});
  CHECK(kept(0.5f, 0) == std::vector<int32_t>{1, 3});
  CHECK(kept(0.4f, 0) == std::vector<int32_t>{1});
  CHECK(kept(0.0f, 0) == std::vector<int32_t>{1});
  CHECK(kept(1.0f, 3) == std::vector<int32_t>{1, 3, 0});
}

TEST_CASE("keep_top equals a full stable sort on long distributions with ties") {
  for (const float top_p : {0.3f, 0.9f, 0.999f, 1.0f}) {
    std::mt19937 random(7);
    std::vector<Candidate> entries;
    float sum = 0.0f;
    for (int32_t i = 0; i < 4097; ++i) {
      entries.push_back({static_cast<float>(1 + random() % 50), i});
      sum += entries.back().probability;
    }
    for (Candidate& entry : entries) entry.probability /= sum;
    std::vector<Candidate> sorted = entries;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Candidate& a, const Candidate& b) { return a.probability > b.probability; });
    const int64_t count = keep_top(entries, {.temperature = 1, .top_p = top_p, .top_k = 0, .seed = 0});
    float before = 0.0f;
    for (int64_t i = 0; i < count; ++i) {
      CHECK(before < top_p);
      CHECK(entries[static_cast<size_t>(i)].index == sorted[static_cast<size_t>(i)].index);
      before += sorted[static_cast<size_t>(i)].probability;
    }
    CHECK((before >= top_p || count == 4097));
  }
}

TEST_CASE("draw takes the first entry whose running sum exceeds the uniform") {
  const std::vector<Candidate> kept = {{0.5f, 4}, {0.25f, 1}, {0.25f, 9}};
  CHECK(draw(kept, 0.0f) == 4);
  CHECK(draw(kept, 0.5f) == 1);
  CHECK(draw(kept, 0.75f) == 9);
  CHECK(draw(kept, 1.0f) == 9);
}

TEST_CASE("both backends draw the same codes") {
  for (const int64_t entries : {int64_t{1}, int64_t{17}, int64_t{1024}, int64_t{4097}}) {
    for (const float temperature : {0.0f, 1e-30f, 0.7f, 1.0f}) {
      const Sampling sampling{.temperature = temperature, .top_p = 0.9f, .top_k = 0, .seed = 42};
      const auto codes = [&](Ops& ops) {
        std::vector<float> all;
        for (int32_t frame = 0; frame < 12; ++frame) {
          const FloatRows logits = random_rows(1, entries, static_cast<uint32_t>(frame), 6.0f);
          const Draw drawn = pick(ops, logits, sampling, frame, frame % 10);
          CHECK(drawn.failure == 0);
          all.push_back(static_cast<float>(drawn.code));
        }
        return all;
      };
      RefOps ref;
      INFO(entries, " entries at temperature ", temperature);
      CHECK(same_bits(cpu_result(codes), codes(ref)));
    }
  }
}

TEST_CASE("temperature 0 takes the lowest index of the greatest logits") {
  FloatRows logits = random_rows(1, 40, 1);
  logits.begin()[9] = logits.begin()[30] = 5.0f;
  const auto code = [&](Ops& ops) { return pick(ops, logits, {.temperature = 0.0f}, 0, 0).code; };
  RefOps ref;
  CHECK(code(ref) == 9);
  cpu_result([&](Ops& ops) {
    CHECK(code(ops) == 9);
    return std::vector<float>{};
  });
}

TEST_CASE("non-finite logits are reported with frame and codebook, and draw 0") {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    FloatRows logits = random_rows(1, 40, 1);
    logits.begin()[39] = bad;
    const auto check = [&](Ops& ops) {
      const Draw drawn = pick(ops, logits, {}, 3, 7);
      CHECK(drawn.code == 0);
      CHECK(drawn.failure == 1 + 3 * 16 + 7);
      return std::vector<float>{};
    };
    RefOps ref;
    check(ref);
    cpu_result(check);
  }
}
