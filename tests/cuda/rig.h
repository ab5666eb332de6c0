// The tiny checkpoint on a CUDA device, and what the tests of this folder measure.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "lib/base/scalars.h"
#include "lib/engine/model.h"
#include "lib/engine/model_generator.h"

namespace drama3::cuda_test {

// A device to test on is there; otherwise tests of kernels are skipped, which the summary counts.
inline bool no_device() { return list_cuda_devices().empty(); }

// Golden data lie beside the tests, or where DRAMA3_GOLDEN says on a machine that has only the programs.
inline std::string golden_path(const std::string& name) {
  const char* folder = std::getenv("DRAMA3_GOLDEN");
  return (folder != nullptr ? std::string(folder) : std::string(DRAMA3_TEST_DATA "/golden")) + "/" + name;
}

// The tiny checkpoint prepared on one CudaOps.
struct Tiny {
  explicit Tiny(const CudaOptions& options = {}) : ops(make_cuda_ops(options)) {}
  std::unique_ptr<Ops> ops;
  Model model{*ops, golden_path("tiny"), LoadOptions{}};
};

// A device or host view's rows as F32 on the host.
inline std::vector<float> values_of(Ops& ops, const View& rows) {
  std::vector<float> values(static_cast<size_t>(rows.elements()));
  ops.download(View(values.data(), DType::kF32, Shape{rows.rows(), rows.cols()}), rows);
  return values;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline double relative_l2(const std::vector<float>& got, const float* want) {
  double difference = 0.0, norm = 0.0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference += std::pow(double{got[i]} - want[i], 2);
    norm += std::pow(double{want[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

// Cosine of every row with the wanted one, ascending.
inline std::vector<double> row_cosines(const std::vector<float>& got, const float* want, int64_t cols) {
  std::vector<double> cosines;
  for (size_t row = 0; row * static_cast<size_t>(cols) < got.size(); ++row) {
    double dot = 0.0, a = 0.0, b = 0.0;
    for (size_t i = row * static_cast<size_t>(cols); i < (row + 1) * static_cast<size_t>(cols); ++i) {
      dot += double{got[i]} * want[i];
      a += double{got[i]} * got[i];
      b += double{want[i]} * want[i];
    }
    cosines.push_back(dot / std::sqrt(a * b));
  }
  std::sort(cosines.begin(), cosines.end());
  return cosines;
}

}  // namespace drama3::cuda_test
