// Fibers, barriers and a runtime API over host memory.
#include "tests/cuda/emulation/machine.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

// Where the linker puts the program.
extern "C" const char __executable_start;

// Saves the callee-saved registers on the running stack and continues on another.
extern "C" void drama3_fiber_switch(void** from, void* to);
asm(R"(
.text
.globl drama3_fiber_switch
drama3_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");

namespace drama3::emulation {

Position here;
uint8_t* dynamic_memory = nullptr;

namespace {

constexpr size_t kStackBytes = 128 << 10;
constexpr size_t kMaxThreads = 1024;
constexpr size_t kSharedBytes = 256 << 10;

enum class Wait : uint8_t { kNone, kWarp, kBlock, kDone };

struct Fiber {
  void* stack = nullptr;
  Wait wait = Wait::kDone;
};

std::vector<Fiber> fibers(kMaxThreads);
uint8_t* stacks = nullptr;
Slot slots[kMaxThreads];
void* scheduler_stack = nullptr;
size_t running = 0;
const std::function<void()>* current_body = nullptr;

void yield(Wait wait) {
  fibers[running].wait = wait;
  drama3_fiber_switch(&fibers[running].stack, scheduler_stack);
}

void fiber_main() {
  (*current_body)();
  yield(Wait::kDone);
  std::abort();
}

void prepare(size_t index) {
  uint8_t* top = stacks + (index + 1) * kStackBytes;
  auto** frame = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{15});
  *--frame = nullptr;  // keeps the stack aligned as after a call
  *--frame = reinterpret_cast<void*>(&fiber_main);
  for (int i = 0; i < 6; ++i) *--frame = nullptr;
  fibers[index] = {frame, Wait::kNone};
}

// Frees the threads of [begin, end) if all that live wait for this; says whether any was freed.
bool release(size_t begin, size_t end, Wait wait) {
  bool any = false;
  for (size_t i = begin; i < end; ++i) {
    if (fibers[i].wait == Wait::kDone) continue;
    if (fibers[i].wait != wait) return false;
    any = true;
  }
  if (!any) return false;
  for (size_t i = begin; i < end; ++i) {
    if (fibers[i].wait == wait) fibers[i].wait = Wait::kNone;
  }
  return true;
}

void run_block(unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) prepare(i);
  while (true) {
    for (unsigned i = 0; i < threads; ++i) {
      if (fibers[i].wait != Wait::kNone) continue;
      running = i;
      here.thread = {i, 0, 0};
      drama3_fiber_switch(&scheduler_stack, fibers[i].stack);
    }
    bool freed = false;
    for (unsigned warp = 0; warp < threads; warp += 32) {
      freed |= release(warp, warp + 32 < threads ? warp + 32 : threads, Wait::kWarp);
    }
    if (!freed) freed = release(0, threads, Wait::kBlock);
    if (freed) continue;
    for (unsigned i = 0; i < threads; ++i) {
      if (fibers[i].wait == Wait::kDone) continue;
      std::fprintf(stderr, "emulation: a barrier is never complete (thread %u of block %u,%u)\n", i,
                   here.block.x, here.block.y);
      std::abort();
    }
    return;
  }
}

}  // namespace

void block_barrier() { yield(Wait::kBlock); }
void warp_barrier() { yield(Wait::kWarp); }
Slot& slot(int lane) { return slots[here.thread.x / 32 * 32 + static_cast<unsigned>(lane)]; }

void run_grid(const dim3& grid, unsigned block, size_t shared, unsigned cluster,
              const std::function<void()>& body) {
  if (stacks == nullptr) {
    stacks = static_cast<uint8_t*>(
        mmap(nullptr, kStackBytes * kMaxThreads, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    dynamic_memory = static_cast<uint8_t*>(std::aligned_alloc(128, kSharedBytes));
  }
  if (block == 0 || block > kMaxThreads || shared > 227 * 1024 || grid.x % cluster != 0) {
    std::fprintf(stderr, "emulation: a launch of %u threads, %zu shared bytes is refused\n", block, shared);
    std::abort();
  }
  current_body = &body;
  here.block_dim = dim3(block);
  here.grid_dim = grid;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        here.block = {x / cluster * cluster + (cluster - 1 - x % cluster), y, z};
        std::memset(dynamic_memory, 0xff, shared);
        run_block(block);
      }
    }
  }
}

namespace {

struct Launched {
  std::set<uintptr_t> kernels;
  ~Launched() {
    const char* path = std::getenv("DRAMA3_LAUNCHED_KERNELS");
    std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
    if (file == nullptr) return;
    const auto begin = reinterpret_cast<uintptr_t>(&__executable_start);
    for (const uintptr_t kernel : kernels) {
      std::fprintf(file, "%lx\n", static_cast<unsigned long>(kernel - begin));
    }
    std::fclose(file);
  }
};
Launched launched;

using Recording = std::vector<std::function<void()>>;
Recording* recording = nullptr;

}  // namespace

void note_launch(const void* kernel) { launched.kernels.insert(reinterpret_cast<uintptr_t>(kernel)); }

void enqueue(std::function<void()> work) {
  if (recording != nullptr) {
    recording->push_back(std::move(work));
  } else {
    work();
  }
}

}  // namespace drama3::emulation

using drama3::emulation::enqueue;

extern "C" {

cudaError_t cudaMalloc(void** at, size_t bytes) {
  *at = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *at == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* at) {
  std::free(at);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** at, size_t bytes) { return cudaMalloc(at, bytes); }
cudaError_t cudaFreeHost(void* at) { return cudaFree(at); }
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  enqueue([=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind, cudaStream_t) {
  enqueue([=] {
    for (size_t r = 0; r < height; ++r) {
      std::memcpy(static_cast<char*>(to) + r * to_pitch, static_cast<const char*>(from) + r * from_pitch,
                  width);
    }
  });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* at, int byte, size_t bytes, cudaStream_t) {
  enqueue([=] { std::memset(at, byte, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = size_t{1} << 30;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof *properties);
  std::strcpy(properties->name, "emulated GPU");
  properties->major = 9;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char*, int, int) { return cudaErrorNotSupported; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = 5;  // so few that blocks walk over several tiles
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = 228 << 10;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = 227 << 10;
      break;
    default:
      *value = 0;
  }
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
// The one global that is looked up says what the image was compiled for.
cudaError_t cudaMemcpyFromSymbol(void* to, const void*, size_t bytes, size_t, cudaMemcpyKind) {
  const int compiled_for = 90;
  if (bytes != sizeof compiled_for) return cudaErrorInvalidValue;
  std::memcpy(to, &compiled_for, bytes);
  return cudaSuccess;
}
cudaError_t cudaGetLastError(void) { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "emulated error"; }
const char* cudaGetErrorString(cudaError_t) { return "emulated error"; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return drama3::emulation::recording == nullptr ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = nullptr;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  drama3::emulation::recording = new drama3::emulation::Recording;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  *graph = reinterpret_cast<cudaGraph_t>(drama3::emulation::recording);
  drama3::emulation::recording = nullptr;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = reinterpret_cast<cudaGraphExec_t>(
      new drama3::emulation::Recording(*reinterpret_cast<drama3::emulation::Recording*>(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<drama3::emulation::Recording*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete reinterpret_cast<drama3::emulation::Recording*>(exec);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t) {
  for (const auto& work : *reinterpret_cast<drama3::emulation::Recording*>(exec)) work();
  return cudaSuccess;
}

}  // extern "C"
