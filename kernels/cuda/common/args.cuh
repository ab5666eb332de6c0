// Pieces of kernel arguments that host and device code share.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/common/scalars.cuh"

namespace drama3 {

// Rows of a matrix: pointer and elements from one row to the next.
template <typename T>
struct Rows {
  T* data = nullptr;
  int64_t stride = 0;
  __host__ __device__ T* row(int64_t r) const { return data + r * stride; }
};

}  // namespace drama3
