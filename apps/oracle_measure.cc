// Errors, cosines, divergences and their bars.
#include "apps/oracle_measure.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace drama3 {
namespace {

constexpr int64_t kOverlapEntries = 30;

double ratio(double difference, double norm) {
  if (!std::isfinite(difference)) return kOpen;
  if (norm > 0.0) return difference / norm;
  return difference == 0.0 ? 0.0 : kOpen;
}

// Sums of one row.
struct RowSums {
  double difference = 0.0, want = 0.0, got = 0.0, product = 0.0;

  double relative() const { return ratio(std::sqrt(difference), std::sqrt(want)); }
  double cosine() const {
    if (want == 0.0 && got == 0.0) return 1.0;
    const double cosine = product / std::sqrt(want * got);
    return std::isfinite(cosine) ? cosine : -1.0;
  }
};

std::vector<double> log_softmax(const float* logits, int64_t count) {
  const double top = *std::max_element(logits, logits + count);
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(logits[i] - top);
  std::vector<double> out(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) out[static_cast<size_t>(i)] = logits[i] - top - std::log(sum);
  return out;
}

double divergence(const float* want, const float* got, int64_t count) {
  const std::vector<double> p = log_softmax(want, count), q = log_softmax(got, count);
  double sum = 0.0;
  for (size_t i = 0; i < p.size(); ++i) sum += std::exp(p[i]) * (p[i] - q[i]);
  return std::isfinite(sum) ? sum : kOpen;
}

std::vector<int64_t> likeliest(const float* logits, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  const auto kept = order.begin() + std::min(count, kOverlapEntries);
  std::partial_sort(order.begin(), kept, order.end(), [&](int64_t a, int64_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  order.erase(kept, order.end());
  std::sort(order.begin(), order.end());
  return order;
}

double shared_share(const float* want, const float* got, int64_t count) {
  const std::vector<int64_t> a = likeliest(want, count), b = likeliest(got, count);
  std::vector<int64_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return static_cast<double>(both.size()) / static_cast<double>(a.size());
}

bool all_finite(const float* values, int64_t count) {
  return std::all_of(values, values + count, [](float x) { return std::isfinite(x); });
}

RowSums add_row(const float* want, const float* got, int64_t count, Distance& total) {
  RowSums sums;
  for (int64_t i = 0; i < count; ++i) {
    const double w = want[i], g = got[i];
    const double error = std::isfinite(g - w) ? std::fabs(g - w) : kOpen;
    total.different += g != w;
    total.worst_absolute = std::max(total.worst_absolute, error);
    total.worst_entry = std::max(total.worst_entry, ratio(error, std::fabs(w)));
    sums.difference += error * error;
    sums.want += w * w;
    sums.got += g * g;
    sums.product += w * g;
  }
  return sums;
}

}  // namespace

double Distance::median_cosine() const {
  if (row_cosine.empty()) return 1.0;
  const size_t half = row_cosine.size() / 2;
  return row_cosine.size() % 2 == 1 ? row_cosine[half] : 0.5 * (row_cosine[half - 1] + row_cosine[half]);
}

Distance distance(const FloatTensor& got, const FloatTensor& want, bool logits) {
  INVARIANT(got.values.size() == want.values.size(), got.shape.text(), " and ", want.shape.text());
  Distance total;
  total.entries = static_cast<int64_t>(want.values.size());
  const int64_t cols = want.cols();
  double difference = 0.0, norm = 0.0;
  for (int64_t r = 0; r < want.rows(); ++r) {
    const float* ours = got.values.data() + r * cols;
    const RowSums sums = add_row(want.row(r), ours, cols, total);
    if (total.row_relative.empty() ||
        sums.relative() > total.row_relative[static_cast<size_t>(total.worst_row)])
      total.worst_row = r;
    total.row_relative.push_back(sums.relative());
    total.row_cosine.push_back(sums.cosine());
    difference += sums.difference;
    norm += sums.want;
    if (!logits) continue;
    const bool finite = all_finite(ours, cols);
    total.worst_kl =
        std::max(total.worst_kl.value_or(0.0), finite ? divergence(want.row(r), ours, cols) : kOpen);
    total.overlap =
        std::min(total.overlap.value_or(1.0), finite ? shared_share(want.row(r), ours, cols) : 0.0);
  }
  total.relative_l2 = ratio(std::sqrt(difference), std::sqrt(norm));
  std::sort(total.row_relative.rbegin(), total.row_relative.rend());
  std::sort(total.row_cosine.begin(), total.row_cosine.end());
  return total;
}

Distance distance(const IntTensor& got, const IntTensor& want) {
  INVARIANT(got.values.size() == want.values.size(), got.shape.text(), " and ", want.shape.text());
  const FloatTensor ours{want.shape, {got.values.begin(), got.values.end()}};
  const FloatTensor theirs{want.shape, {want.values.begin(), want.values.end()}};
  Distance total = distance(ours, theirs);
  total.different = 0;
  for (size_t i = 0; i < want.values.size(); ++i) total.different += got.values[i] != want.values[i];
  return total;
}

const Bar& bar_of(Subject subject, bool half) {
  for (const SubjectBars& bars : kBars) {
    if (bars.subject == subject) return half ? bars.half : bars.full;
  }
  INVARIANT(false, "no bar for subject ", static_cast<int>(subject));
  return kBars.back().full;
}

bool is_judged(const Bar& bar) { return bar_text(bar) != "-"; }

std::string bar_text(const Bar& bar) {
  std::string text;
  const auto add = [&](bool bound, const std::string& words) {
    if (bound) text += (text.empty() ? "" : ", ") + words;
  };
  add(bar.equal, "equal");
  add(bar.absolute < kOpen, join("abs <= ", bar.absolute));
  add(bar.entry < kOpen, join("entry <= ", bar.entry));
  add(bar.relative_l2 < kOpen, join("L2 <= ", bar.relative_l2));
  add(bar.row < kOpen, join("row <= ", bar.row));
  add(bar.spared > 0, join("but ", bar.spared, " rows <= ", bar.spared_row));
  add(bar.median_cosine > -kOpen, join("median cos >= ", bar.median_cosine));
  add(bar.low_share < 1.0, join("below ", bar.high_cosine, " at most ", 100 * bar.low_share, " %"));
  add(bar.row_cosine > -kOpen, join("cos >= ", bar.row_cosine));
  add(bar.kl < kOpen, join("KL <= ", bar.kl));
  add(bar.overlap > -kOpen, join("top-30 >= ", bar.overlap));
  return text.empty() ? "-" : text;
}

bool meets(const Distance& d, const Bar& bar) {
  const auto spared = static_cast<size_t>(bar.spared);
  const bool spared_meet = d.worst_row_relative() <= (bar.spared > 0 ? bar.spared_row : bar.row);
  const bool rows_meet = d.row_relative.size() <= spared || d.row_relative[spared] <= bar.row;
  const auto low =
      std::lower_bound(d.row_cosine.begin(), d.row_cosine.end(), bar.high_cosine) - d.row_cosine.begin();
  const double share =
      d.row_cosine.empty() ? 0.0 : static_cast<double>(low) / static_cast<double>(d.row_cosine.size());
  return (!bar.equal || d.different == 0) && d.worst_absolute <= bar.absolute && d.worst_entry <= bar.entry &&
         d.relative_l2 <= bar.relative_l2 && spared_meet && rows_meet && d.worst_cosine() >= bar.row_cosine &&
         d.median_cosine() >= bar.median_cosine && share <= bar.low_share &&
         d.worst_kl.value_or(0.0) <= bar.kl && d.overlap.value_or(1.0) >= bar.overlap;
}

Top top_of(const float* values, int64_t count) {
  Top top{0, kOpen};
  for (int64_t i = 1; i < count; ++i) {
    if (values[i] > values[top.index]) top.index = static_cast<int32_t>(i);
  }
  for (int64_t i = 0; i < count; ++i) {
    if (i != top.index) top.margin = std::min(top.margin, double{values[top.index]} - values[i]);
  }
  return top;
}

}  // namespace drama3
