// The replaced operator new of this test program; a file of its own, so that no caller sees malloc inlined.
#include "tests/store/failing_allocation.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<uint64_t> g_failing{0};
std::atomic<uint64_t> g_seen{0};
std::atomic<bool> g_from_there_on{false};

bool fails() {
  const uint64_t failing = g_failing.load();
  if (failing == 0) return false;
  const uint64_t seen = ++g_seen;
  return seen == failing || (seen > failing && g_from_there_on.load());
}

}  // namespace

namespace drama3::testing {

void fail_allocation(uint64_t nth, bool from_there_on) {
  if (nth > 0) g_seen = 0;
  g_from_there_on = from_there_on;
  g_failing = nth;
}

uint64_t allocations_seen() { return g_seen.load(); }

}  // namespace drama3::testing

void* operator new(size_t bytes) {
  void* const memory = fails() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
