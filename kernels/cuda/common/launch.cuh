// The one place from which kernels are launched: geometry, overlap with the launch before, error check.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <tuple>
#include <type_traits>

#include "kernels/cuda/common/check.h"

namespace drama3 {

// What a launch needs from the backend: its stream, what the loaded image can do, and a counter of launches.
struct LaunchQueue {
  cudaStream_t stream = nullptr;
  bool overlap = false;   // image and device know programmatic dependent launch
  bool clusters = false;  // image and device know thread block clusters
  int processors = 1;     // multiprocessors of the device
  int shared_limit = 0;   // dynamic shared bytes of a block, so that two of its kind fit where that helps
  int64_t launches = 0;
};

struct Geometry {
  dim3 grid = 1;
  unsigned block = 256;
  size_t shared = 0;     // dynamic bytes
  unsigned cluster = 1;  // blocks along x
};

// Enqueues kernel(args...); throws Error when the launch is refused. The kernel must call
// wait_for_previous().
template <typename... Params, typename... Args>
void launch(LaunchQueue& queue, void (*kernel)(Params...), const Geometry& geometry, const Args&... args) {
  if (geometry.grid.x == 0 || geometry.grid.y == 0 || geometry.grid.z == 0) return;
  // 48 KiB is the limit for static and dynamic memory together; no kernel has more than 32 KiB of static
  // memory.
  if (geometry.shared > 16 * 1024) {
    CUDA_CHECK(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                    cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(geometry.shared)));
  }
  cudaLaunchAttribute attributes[2];
  unsigned count = 0;
  if (queue.overlap) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (geometry.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = geometry.cluster;
    attributes[count].val.clusterDim.y = 1;
    attributes[count++].val.clusterDim.z = 1;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = geometry.grid;
  config.blockDim = dim3(geometry.block);
  config.dynamicSmemBytes = geometry.shared;
  config.stream = queue.stream;
  config.attrs = attributes;
  config.numAttrs = count;
  std::tuple<std::remove_cv_t<Params>...> values(args...);
  std::apply(
      [&](auto&... value) {
        void* pointers[] = {&value...};
        CUDA_CHECK(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), pointers));
      },
      values);
  ++queue.launches;
}

}  // namespace drama3
