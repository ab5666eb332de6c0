// The PTX instructions and hardware queries that kernels use, each behind one function.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/common/scalars.cuh"

namespace drama3 {

// Dynamic shared memory of the block, 16-byte aligned.
__device__ inline uint8_t* dynamic_shared() {
  extern __shared__ uint4 drama3_dynamic_shared[];
  return reinterpret_cast<uint8_t*>(drama3_dynamic_shared);
}

// Sixteen weight bytes, read once: past L1 through the read-only path.
__device__ inline uint4 load_weight(const uint4* at) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(at));
  return value;
}

// c += a b for one 16 x 8 x 16 tile, F32 sums.
__device__ inline void mma16816(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, bf16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline void mma16816(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, f16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Waits until the launch before this one has finished and its writes are visible. Every kernel calls it
// before its first write, and before it reads what the launch before may have written. Weights, and what only
// launches before that one wrote, it may read earlier: they had finished when this one could start.
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next launch start its weight loads. Called after wait_for_previous(), so that of all earlier
// launches only this one can still be running when the next one starts.
__device__ inline void allow_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Both halves of a barrier among the blocks of a cluster; a no-op below compute capability 9.0, whose images
// are never launched with clusters.
__device__ inline void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
__device__ inline void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// Calls a line of global memory into the second cache level.
__device__ inline void prefetch_line(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

// Sixteen bytes from global into shared memory behind the thread's back; zeros where nothing is there. Copies
// are counted by groups.
__device__ inline void copy16(void* to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(there ? 16 : 0)
               : "memory");
}
__device__ inline void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until all but the last `Open` groups have arrived.
template <int Open>
__device__ inline void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Open) : "memory");
}

// Counts a block that has arrived and returns how many had before it; by one thread of the block, after a
// barrier. What any block wrote before it arrived, the blocks that arrive later can read past their barrier.
__device__ inline int arrive(int* counter) {
  int before;
  asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
  return before;
}

// A flag between the blocks of two launches that may run at the same time.
__device__ inline void raise_flag(int* flag) {
  asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(flag) : "memory");
}
__device__ inline void await_flag(const int* flag) {
  int raised = 0;
  while (raised == 0) {
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(raised) : "l"(flag) : "memory");
  }
}

}  // namespace drama3
