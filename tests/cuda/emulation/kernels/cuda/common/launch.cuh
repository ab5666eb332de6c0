// Stands in for the header of the same name: launches run on fibers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/common/check.h"
#include "tests/cuda/emulation/machine.h"

namespace drama3 {

struct LaunchQueue {
  cudaStream_t stream = nullptr;
  bool overlap = false;
  bool clusters = false;
  int processors = 1;
  int shared_limit = 0;
  int64_t launches = 0;
};

struct Geometry {
  dim3 grid = 1;
  unsigned block = 256;
  size_t shared = 0;
  unsigned cluster = 1;
};

template <typename... Params, typename... Args>
void launch(LaunchQueue& queue, void (*kernel)(Params...), const Geometry& geometry, const Args&... args) {
  if (geometry.grid.x == 0 || geometry.grid.y == 0 || geometry.grid.z == 0) return;
  ++queue.launches;
  emulation::note_launch(reinterpret_cast<const void*>(kernel));
  emulation::enqueue([=] {
    emulation::run_grid(geometry.grid, geometry.block, geometry.shared, geometry.cluster,
                        [=] { kernel(args...); });
  });
}

}  // namespace drama3
