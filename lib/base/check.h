// Always-on invariant checks that print their values and abort: for broken promises of ours, never for bad
// input.
#pragma once

#include <string>

#include "lib/base/error.h"

namespace drama3 {

// Prints "file:line: INVARIANT(condition) failed: values" on stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& values);

}  // namespace drama3

// INVARIANT(condition, values...): aborts with the joined values when the condition is false.
#define INVARIANT(condition, ...)                                                          \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      ::drama3::check_failed(__FILE__, __LINE__, #condition, ::drama3::join(__VA_ARGS__)); \
    }                                                                                      \
  } while (false)

#ifdef NDEBUG
#define DEBUG_INVARIANT(condition, ...) \
  do {                                  \
  } while (false)
#else
#define DEBUG_INVARIANT(condition, ...) INVARIANT(condition, __VA_ARGS__)
#endif
