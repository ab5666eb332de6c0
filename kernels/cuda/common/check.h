// Turning CUDA's return codes into the project's Error.
#pragma once

#include <cuda_runtime.h>

#include "lib/base/error.h"

namespace drama3 {

// Throws an Error that names the call and CUDA's own words.
inline void cuda_require(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  fail("CUDA: ", call, ": expected success, got ", cudaGetErrorName(code), " (", cudaGetErrorString(code),
       "); see --list-devices");
}

}  // namespace drama3

#define CUDA_CHECK(call) ::drama3::cuda_require((call), #call)
