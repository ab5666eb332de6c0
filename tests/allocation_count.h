// Counts every operator new of the test program; include it in one source of a program only, as it replaces
// them.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace drama3::detail {
inline std::atomic<int64_t> allocations{0};
}

namespace drama3 {

// Calls of operator new so far, on all threads.
inline int64_t allocation_count() { return detail::allocations; }

}  // namespace drama3

// GCC, inlining one half of a pair, takes free() for a mistake.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void* operator new(size_t bytes) {
  ++drama3::detail::allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
