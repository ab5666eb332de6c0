// Figures over repeated measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace drama3::bench {

struct Summary {
  int64_t n = 0;
  double median = 0.0;
  double mean = 0.0;
  std::optional<double> stddev;  // with n - 1; nothing for n = 1
  double min = 0.0;
  double max = 0.0;
  std::optional<double> p95;  // nearest rank; nothing under 20 samples
};

// The figures of at least one sample.
Summary summarise(std::vector<double> samples);

}  // namespace drama3::bench
