// Median, mean, spread and percentile.
#include "apps/bench_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/base/check.h"

namespace drama3::bench {

Summary summarise(std::vector<double> samples) {
  INVARIANT(!samples.empty(), "no samples");
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  Summary summary{.n = static_cast<int64_t>(n)};
  summary.min = samples.front();
  summary.max = samples.back();
  summary.median = (samples[(n - 1) / 2] + samples[n / 2]) / 2.0;
  summary.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(n);
  if (n > 1) {
    double squares = 0.0;
    for (double sample : samples) squares += (sample - summary.mean) * (sample - summary.mean);
    summary.stddev = std::sqrt(squares / static_cast<double>(n - 1));
  }
  if (n >= 20) summary.p95 = samples[(n * 95 + 99) / 100 - 1];
  return summary;
}

}  // namespace drama3::bench
