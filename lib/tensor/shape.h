// Up to eight dimensions, outermost first, held by value.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "lib/base/check.h"

namespace drama3 {

inline constexpr int kMaxRank = 8;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    for (int64_t dim : dims) append(dim);
  }

  void append(int64_t dim) {
    INVARIANT(rank_ < kMaxRank, "rank above ", kMaxRank);
    dims_[static_cast<size_t>(rank_++)] = dim;
  }
  int rank() const { return rank_; }
  int64_t operator[](int axis) const {
    DEBUG_INVARIANT(axis >= 0 && axis < rank_, "axis ", axis, " of rank ", rank_);
    return dims_[static_cast<size_t>(axis)];
  }
  // The product of all dimensions; 1 for rank 0. The caller has checked that it fits.
  int64_t elements() const {
    int64_t product = 1;
    for (int axis = 0; axis < rank_; ++axis) product *= dims_[static_cast<size_t>(axis)];
    return product;
  }
  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int axis = 0; axis < rank_; ++axis) {
      if ((*this)[axis] != other[axis]) return false;
    }
    return true;
  }
  // "[2048, 512]"
  std::string text() const {
    std::string out = "[";
    for (int axis = 0; axis < rank_; ++axis) out += (axis ? ", " : "") + std::to_string((*this)[axis]);
    return out + "]";
  }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace drama3
