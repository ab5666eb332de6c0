// Processor seconds that an action takes, comparable between builds.
#pragma once

#include <cstddef>
#include <ctime>

// What a long text is: shorter where each byte costs fifty times as much.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr size_t kLongTextBytes = 1 << 16;
#else
inline constexpr size_t kLongTextBytes = 1 << 20;
#endif

// Processor time instead of the clock's, so that a busy machine fails no test; unoptimised and sanitized
// builds get the slack they were seen to need.
template <typename Action>
double processor_seconds(const Action& action) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr double kSlack = 20.0;
#elif !defined(NDEBUG)
  constexpr double kSlack = 5.0;
#else
  constexpr double kSlack = 1.0;
#endif
  const std::clock_t start = std::clock();
  action();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / kSlack;
}
