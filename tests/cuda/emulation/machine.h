// A block of GPU threads as fibers of one host thread: barriers, warp exchanges and tensor-core products, so
// that kernels run, slowly and exactly as written, where there is no GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>

namespace drama3::emulation {

struct Position {
  uint3 thread;
  uint3 block;
  dim3 block_dim;
  dim3 grid_dim;
};

// Where the running fiber stands.
extern Position here;
extern uint8_t* dynamic_memory;

// Waits for all live threads of the block, or of the warp. A barrier that some thread never reaches aborts.
void block_barrier();
void warp_barrier();

// Sixty-four bytes per lane that the warp's threads leave for one another between two warp barriers.
struct Slot {
  uint32_t words[16];
};
Slot& slot(int lane);
inline int lane() { return static_cast<int>(here.thread.x % 32); }

// Runs `body` for every thread of every block. Blocks run one after the other; those of a cluster in
// descending order, so that its first block, which alone writes what the others read, comes last.
void run_grid(const dim3& grid, unsigned block, size_t shared, unsigned cluster,
              const std::function<void()>& body);

// Notes that a kernel was launched; at the end of the program the addresses of all of them, relative to the
// program's own, are written to the file that DRAMA3_LAUNCHED_KERNELS names.
void note_launch(const void* kernel);

// Enqueues work on the one stream: runs it now, or keeps it for the graph that is being recorded.
void enqueue(std::function<void()> work);

}  // namespace drama3::emulation
