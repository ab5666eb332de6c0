// Angles in F32, their cosine and sine in double, rounded once.
#include "lib/ops/rope.h"

#include <cmath>
#include <utility>
#include <vector>

#include "lib/base/scalars.h"
#include "lib/base/trigonometry.h"

namespace drama3 {

Rope make_rope(Workspace& workspace, const RopeSpec& spec) {
  const int64_t half = spec.rotary / 2;
  std::vector<float> cosines(static_cast<size_t>(spec.positions * half));
  std::vector<float> sines(cosines.size());
  for (int64_t i = 0; i < half; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(spec.rotary);
    const float frequency = static_cast<float>(std::pow(static_cast<double>(spec.theta), exponent));
    for (int64_t p = 0; p < spec.positions; ++p) {
      const float angle = static_cast<float>(p) * frequency;
      const SineCosine turn = sine_cosine(static_cast<double>(angle));
      const float cosine = static_cast<float>(turn.cosine);
      const float sine = static_cast<float>(turn.sine);
      cosines[static_cast<size_t>(p * half + i)] = spec.round_to_bf16 ? round_to_bf16(cosine) : cosine;
      sines[static_cast<size_t>(p * half + i)] = spec.round_to_bf16 ? round_to_bf16(sine) : sine;
    }
  }
  const Shape shape{spec.positions, half};
  Rope rope{.cos = {}, .sin = {}, .rotary = spec.rotary, .interleaved = spec.interleaved};
  for (auto [table, values] : {std::pair{&rope.cos, &cosines}, std::pair{&rope.sin, &sines}}) {
    *table = workspace.take(DType::kF32, shape);
    workspace.ops().upload(*table, View(values->data(), DType::kF32, shape));
  }
  return rope;
}

}  // namespace drama3
