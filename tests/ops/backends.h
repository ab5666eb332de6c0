// One test body, run on the reference and on the CPU backend with every instruction set and several threads.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/targets.h"
#include "kernels/ref/ref_ops.h"

namespace drama3::test {

// Rows of values whose first element stands at an odd multiple of its size, so nothing is aligned to more.
template <typename T>
class Rows {
 public:
  Rows(int64_t rows, int64_t cols, DType type) : data_(static_cast<size_t>(rows * cols) + 1), type_(type) {
    shape_ = Shape{rows, cols};
  }
  View view() const { return {const_cast<T*>(data_.data()) + 1, type_, shape_}; }
  T* begin() { return data_.data() + 1; }
  T* end() { return data_.data() + data_.size(); }
  std::vector<float> values() const { return {data_.begin() + 1, data_.end()}; }

 private:
  std::vector<T> data_;
  DType type_;
  Shape shape_;
};

using FloatRows = Rows<float>;

// Uniform in [-range, range), the same on every platform.
inline FloatRows random_rows(int64_t rows, int64_t cols, uint32_t seed, float range = 1.0f) {
  std::mt19937 random(seed);
  FloatRows out(rows, cols, DType::kF32);
  for (float& value : out) value = range * (static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f);
  return out;
}

inline Rows<int32_t> int_rows(int64_t rows, int64_t cols, int32_t value = 0) {
  Rows<int32_t> out(rows, cols, DType::kI32);
  for (int32_t& element : out) element = value;
  return out;
}

// The one table of tolerances: how far a backend's result may be from the definition, as a multiple of the
// sum of the absolute terms behind it. 2^-24 is a float's rounding; the definition rounds once per term
// inside blocks of 128, the CPU once per term of a lane.
struct Tolerance {
  const char* backend;
  DType type;
  float per_term;
};
inline constexpr Tolerance kTolerances[] = {{"cpu", DType::kF32, 32 * 0x1p-24f}};

inline float tolerance_of(const Ops& ops) {
  for (const Tolerance& tolerance : kTolerances) {
    if (ops.name() == tolerance.backend && ops.activation_type() == tolerance.type) return tolerance.per_term;
  }
  FAIL("no tolerance for ", ops.name());
  return 0.0f;
}

// Computes everything that is compared, on one backend.
using Body = std::function<std::vector<float>(Ops&)>;

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// The body's result on the CPU, after checking that it has the same bits with each instruction set on 1, 2
// and 3 threads.
inline std::vector<float> cpu_result(const Body& body) {
  std::vector<float> first;
  bool any = false;
  for (const int threads : {1, 2, 3}) {
    CpuOps cpu(threads);
    for (const std::string& set : instruction_sets()) {
      select_instruction_set(set);
      const std::vector<float> result = body(cpu);
      if (!any) first = result;
      any = true;
      INFO(set, " on ", threads, " threads");
      CHECK(same_bits(result, first));
    }
  }
  select_instruction_set("");
  return first;
}

// CPU against definition: |difference| <= tolerance * terms[i], terms being the sum of absolute terms.
inline void check_backends(const Body& body, const std::vector<float>& terms) {
  RefOps ref;
  const std::vector<float> expected = body(ref), got = cpu_result(body);
  REQUIRE(got.size() == expected.size());
  REQUIRE(terms.size() == expected.size());
  const float tolerance = tolerance_of(CpuOps(1));
  size_t worst = 0;
  float worst_ratio = -1.0f;
  for (size_t i = 0; i < got.size(); ++i) {
    const float ratio = std::fabs(got[i] - expected[i]) / (tolerance * terms[i] + 1e-37f);
    if (!(ratio <= worst_ratio)) worst = i, worst_ratio = ratio;
  }
  if (got.empty()) return;
  INFO("worst entry ", worst, " of ", got.size(), ": expected ", expected[worst], ", got ", got[worst],
       ", terms ", terms[worst]);
  CHECK(worst_ratio <= 1.0f);
}

// Sizes around the sixteen lanes and the 128 terms of a block.
inline const std::vector<int64_t> kWidths = {1, 15, 16, 17, 33, 127, 128, 129, 200};

// How 128 rows are cut into calls: every cut must give the same bits.
inline const std::vector<int64_t> kCuts = {128, 1, 7, 64, 100};

}  // namespace drama3::test
