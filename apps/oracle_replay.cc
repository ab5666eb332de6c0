// Comparisons as they are judged.
#include "apps/oracle_replay.h"

#include <algorithm>
#include <cmath>

namespace drama3 {
namespace {

Distance measure(const FloatTensor& got, const FloatTensor& want, bool logits) {
  return distance(got, want, logits);
}
Distance measure(const IntTensor& got, const IntTensor& want, bool) { return distance(got, want); }

}  // namespace

template <typename Tensor>
void Replay::add(const Judgement& judgement, const Tensor& got, const Tensor& want) {
  const bool codec = judgement.subject >= Subject::kCodecStage && judgement.subject <= Subject::kHalfUpsample;
  Comparison comparison{.stage = stage,
                        .tensor = judgement.tensor,
                        .shape = want.shape.text(),
                        .distance = {},
                        .bar = bar_of(judgement.subject, codec ? half_codec() : half_activations()),
                        .judged = true,
                        .passed = false,
                        .remark = judgement.remark};
  comparison.judged = is_judged(comparison.bar);
  if (got.values.size() != want.values.size()) {
    comparison.judged = true;
    comparison.remark = "expected the shape " + want.shape.text() + ", got " + got.shape.text();
    comparison.distance = {.entries = static_cast<int64_t>(want.values.size()),
                           .different = static_cast<int64_t>(want.values.size()),
                           .worst_absolute = kOpen,
                           .worst_entry = kOpen,
                           .relative_l2 = kOpen};
  } else {
    comparison.distance = measure(got, want, judgement.logits);
    comparison.passed = meets(comparison.distance, comparison.bar);
  }
  comparisons.push_back(std::move(comparison));
}

void Replay::compare(const Judgement& judgement, const FloatTensor& got, const FloatTensor& want) {
  add(judgement, got, want);
}

void Replay::compare(const Judgement& judgement, const IntTensor& got, const IntTensor& want) {
  add(judgement, got, want);
}

void Replay::compare_argmax(const std::string& tensor, const FloatTensor& got, const FloatTensor& want) {
  IntTensor ours{Shape{want.rows()}, {}}, theirs = ours;
  int64_t close = 0, parted = 0;
  for (int64_t r = 0; r < want.rows() && got.values.size() == want.values.size(); ++r) {
    const float* logits = got.values.data() + r * want.cols();
    double error = 0.0;
    for (int64_t c = 0; c < want.cols(); ++c) {
      error = std::max(error, std::fabs(double{logits[c]} - want.row(r)[c]));
    }
    const Top reference_top = top_of(want.row(r), want.cols()), our_top = top_of(logits, want.cols());
    const bool clear = std::isfinite(error) && reference_top.margin > 4.0 * error;
    const bool too_close = std::isfinite(error) && !clear;
    close += too_close;
    parted += too_close && our_top.index != reference_top.index;
    ours.values.push_back(too_close ? reference_top.index : our_top.index);
    theirs.values.push_back(std::isfinite(error) ? reference_top.index : -1);
  }
  std::string remark;
  if (close > 0) remark = join(close, " margins within 4x the error, ", parted, " of them drawn otherwise");
  compare({.tensor = tensor, .subject = Subject::kArgmax, .remark = remark}, ours, theirs);
}

}  // namespace drama3
