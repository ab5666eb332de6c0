// Stands in for the header of the same name: its functions, and the built-ins of kernels, on fibers.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "kernels/cuda/common/scalars.cuh"
#include "tests/cuda/emulation/machine.h"

#undef __shared__
#define __shared__ static
#undef __launch_bounds__
#define __launch_bounds__(...)
#define threadIdx (::drama3::emulation::here.thread)
#define blockIdx (::drama3::emulation::here.block)
#define blockDim (::drama3::emulation::here.block_dim)
#define gridDim (::drama3::emulation::here.grid_dim)

namespace drama3 {

using std::isfinite;
using std::max;
using std::min;

inline uint8_t* dynamic_shared() { return emulation::dynamic_memory; }
inline uint4 load_weight(const uint4* at) { return *at; }
inline void wait_for_previous() {}
inline void allow_next() {}
inline void cluster_arrive() {}
inline void cluster_wait() {}

inline void prefetch_line(const void*) {}

inline void copy16(void* to, const void* from, bool there) {
  if (there) {
    std::memcpy(to, from, 16);
  } else {
    std::memset(to, 0, 16);
  }
}
inline void close_copies() {}
template <int Open>
void await_copies() {}

inline int arrive(int* counter) { return (*counter)++; }
inline void raise_flag(int* flag) { *flag = 1; }
inline void await_flag(const int* flag) {
  if (*flag == 0) std::abort();  // grids run one after the other: it would never be raised
}

inline void __syncthreads() { emulation::block_barrier(); }
inline void __syncwarp() { emulation::warp_barrier(); }

template <typename T>
T exchanged(T value, int from) {
  std::memcpy(emulation::slot(emulation::lane()).words, &value, sizeof value);
  emulation::warp_barrier();
  T got;
  std::memcpy(&got, emulation::slot(from).words, sizeof got);
  emulation::warp_barrier();
  return got;
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return exchanged(value, emulation::lane() ^ mask);
}
template <typename T>
T __shfl_sync(unsigned, T value, int from) {
  return exchanged(value, from);
}

inline uint32_t __reduce_add_sync(unsigned, uint32_t value) {
  std::memcpy(emulation::slot(emulation::lane()).words, &value, sizeof value);
  emulation::warp_barrier();
  uint32_t sum = 0;
  for (int i = 0; i < 32; ++i) sum += emulation::slot(i).words[0];
  emulation::warp_barrier();
  return sum;
}
inline uint32_t __reduce_max_sync(unsigned, uint32_t value) {
  std::memcpy(emulation::slot(emulation::lane()).words, &value, sizeof value);
  emulation::warp_barrier();
  uint32_t top = 0;
  for (int i = 0; i < 32; ++i) top = std::max(top, emulation::slot(i).words[0]);
  emulation::warp_barrier();
  return top;
}
inline unsigned __ballot_sync(unsigned mask, bool value) {
  return __reduce_add_sync(mask, value ? 1u << emulation::lane() : 0u);
}
inline int __ffs(int value) { return __builtin_ffs(value); }

template <typename T>
T __ldcg(const T* at) {
  return *at;
}
template <typename T>
void __stcg(T* at, T value) {
  *at = value;
}
template <typename T>
T atomicAdd(T* at, T value) {
  const T old = *at;
  *at += value;
  return old;
}
inline float __uint_as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t __float_as_uint(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }

// Half `which` of a pair, widened.
template <typename T>
float half_of(uint32_t pair, int which) {
  const auto bits = static_cast<uint16_t>(pair >> (16 * which));
  T value;
  std::memcpy(&value, &bits, sizeof bits);
  return widen(value);
}

template <typename T>
void mma16816(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, T) {
  emulation::Slot& mine = emulation::slot(emulation::lane());
  for (int i = 0; i < 4; ++i) mine.words[i] = a[i];
  mine.words[4] = b0;
  mine.words[5] = b1;
  emulation::warp_barrier();
  for (int i = 0; i < 4; ++i) {
    const int row = emulation::lane() / 4 + i / 2 * 8, col = emulation::lane() % 4 * 2 + i % 2;
    for (int k = 0; k < 16; ++k) {
      const int quarter = k % 8 / 2;
      const uint32_t left = emulation::slot(row % 8 * 4 + quarter).words[row / 8 + k / 8 * 2];
      const uint32_t right = emulation::slot(col * 4 + quarter).words[4 + k / 8];
      c[i] += half_of<T>(left, k % 2) * half_of<T>(right, k % 2);
    }
  }
  emulation::warp_barrier();
}

}  // namespace drama3
