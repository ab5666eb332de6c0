// Draws against the reference's exact probabilities, measured through Ops::pick on any backend.
#include <algorithm>
#include <cmath>

#include "apps/oracle_replay.h"
#include "lib/base/philox.h"
#include "lib/ops/sampling.h"
#include "lib/ops/workspace.h"

namespace drama3 {
namespace {

constexpr uint32_t kDraws = 1u << 21;  // uniforms at hand, 4.8e-7 apart on average
constexpr uint64_t kSeed = 1;
constexpr float kUnseen = 16.0f / kDraws;  // a less likely entry may fall between two uniforms

struct Uniform {
  float value = 0.0f;
  uint32_t frame = 0;
};

// The uniforms of codebook 0 and one seed, ascending.
std::vector<Uniform> sorted_uniforms() {
  std::vector<Uniform> uniforms(kDraws);
  for (uint32_t frame = 0; frame < kDraws; ++frame) uniforms[frame] = {draw_uniform(kSeed, frame, 0), frame};
  std::sort(uniforms.begin(), uniforms.end(),
            [](const Uniform& a, const Uniform& b) { return a.value < b.value; });
  return uniforms;
}

// One distribution as the backend draws from it.
class DrawProbe {
 public:
  DrawProbe(Ops& ops, const std::vector<Uniform>& uniforms, const FloatTensor& logits, Sampling sampling)
      : ops_(ops), uniforms_(uniforms), workspace_(ops) {
    sampling.seed = kSeed;
    logits_ = workspace_.take(DType::kF32, Shape{1, static_cast<int64_t>(logits.values.size())});
    ops.upload(logits_, View(const_cast<float*>(logits.values.data()), DType::kF32, logits_.shape));
    code_ = workspace_.take(DType::kI32, Shape{1, 1});
    state_ = {.sampling = workspace_.take(DType::kU8, Shape{static_cast<int64_t>(sizeof sampling)}),
              .frame = workspace_.take(DType::kI32, Shape{1}),
              .failure = workspace_.take(DType::kI32, Shape{1})};
    ops.upload(state_.sampling, View(&sampling, DType::kU8, state_.sampling.shape));
  }

  // The entry drawn with uniform `at` of the sorted ones.
  int32_t draw(size_t at) {
    auto frame = static_cast<int32_t>(uniforms_[at].frame);
    ops_.upload(state_.frame, View(&frame, DType::kI32, Shape{1}));
    ops_.pick(code_, logits_, state_, 0);
    int32_t code = 0;
    ops_.download(View(&code, DType::kI32, code_.shape), code_);
    return code;
  }

 private:
  Ops& ops_;
  const std::vector<Uniform>& uniforms_;
  Workspace workspace_;
  View logits_, code_;
  PickState state_;
};

// The kept entries in drawing order, and where each one's stretch of uniforms ends: between two uniforms.
struct Stretch {
  int32_t entry = 0;
  double end_low = 0.0, end_high = 0.0;
};

// Walks the uniforms upwards, finding by bisection where each drawn entry gives way to the next.
std::vector<Stretch> measured_stretches(DrawProbe& probe, const std::vector<Uniform>& uniforms,
                                        size_t limit) {
  std::vector<Stretch> stretches;
  const size_t last = uniforms.size() - 1;
  size_t first = 0;
  while (stretches.size() <= limit) {
    const int32_t entry = probe.draw(first);
    // Doubling steps, then bisection: stretches are short at the end of the order.
    size_t inside = first, outside = first, step = 1;
    while (outside < last) {
      outside = std::min(last, inside + step);
      if (probe.draw(outside) != entry) break;
      inside = outside;
      step *= 2;
    }
    if (inside == last) {
      stretches.push_back({entry, 1.0, 1.0});
      break;
    }
    while (outside - inside > 1) {
      const size_t middle = inside + (outside - inside) / 2;
      (probe.draw(middle) == entry ? inside : outside) = middle;
    }
    stretches.push_back({entry, uniforms[inside].value, uniforms[outside].value});
    first = outside;
  }
  return stretches;
}

// The probabilities nearest to the reference's that the draws allow.
FloatTensor allowed_probabilities(const std::vector<Stretch>& stretches, const FloatTensor& want) {
  FloatTensor got{want.shape, std::vector<float>(want.values.size(), 0.0f)};
  double begin_low = 0.0, begin_high = 0.0;
  for (const Stretch& stretch : stretches) {
    const double least = std::max(0.0, stretch.end_low - begin_high);
    const double most = stretch.end_high - begin_low;
    const auto entry = static_cast<size_t>(stretch.entry);
    if (entry < want.values.size()) {
      got.values[entry] = static_cast<float>(std::clamp(double{want.values[entry]}, least, most));
    }
    begin_low = stretch.end_low;
    begin_high = stretch.end_high;
  }
  return got;
}

void check_case(Replay& replay, const std::vector<Uniform>& uniforms, const std::string& name,
                const JsonValue& settings) {
  ReferenceFile& file = *replay.reference.file("sampler.safetensors");
  const FloatTensor logits = file.floats(name + ".logits"), want = file.floats(name + ".probs");
  const Sampling sampling{.temperature = static_cast<float>(settings.at("temperature").as_number()),
                          .top_p = static_cast<float>(settings.at("top_p").as_number()),
                          .top_k = static_cast<int32_t>(settings.at("top_k").as_unsigned(0, INT32_MAX)),
                          .seed = 0};
  DrawProbe probe(replay.ops, uniforms, logits, sampling);
  const std::vector<Stretch> stretches = measured_stretches(probe, uniforms, logits.values.size());

  IntTensor kept{Shape{want.rows(), want.cols()}, std::vector<int32_t>(want.values.size(), 0)},
      expected = kept;
  int64_t unseen = 0;
  for (const Stretch& stretch : stretches) kept.values[static_cast<size_t>(stretch.entry)] = 1;
  for (size_t i = 0; i < want.values.size(); ++i) {
    const bool hidden = want.values[i] > 0.0f && want.values[i] < kUnseen && !kept.values[i];
    unseen += hidden;
    expected.values[i] = want.values[i] > 0.0f && !hidden;
  }
  const std::string remark = unseen > 0 ? join(unseen, " entries are too unlikely to be seen drawn") : "";
  replay.compare({.tensor = "sampler:" + name + ".kept", .subject = Subject::kKeptSet, .remark = remark},
                 kept, expected);
  replay.compare({.tensor = "sampler:" + name + ".probs", .subject = Subject::kProbability},
                 allowed_probabilities(stretches, want), want);
}

}  // namespace

void replay_sampler(Replay& replay) {
  const JsonDocument* document = replay.reference.json("sampler.json");
  if (document == nullptr || replay.reference.file("sampler.safetensors") == nullptr) {
    return replay.remarks.push_back("sampler.json or sampler.safetensors is not in the reference");
  }
  const std::vector<Uniform> uniforms = sorted_uniforms();
  int index = 0;
  for (const JsonValue settings : document->root().elements()) {
    check_case(replay, uniforms, std::to_string(index++), settings);
  }
}

}  // namespace drama3
