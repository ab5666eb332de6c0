// Always-on invariant checks that print their values and abort: for broken promises of ours, never for bad input.
#pragma once

#include <string>

#include "lib/base/error.h"

namespace drama3 {

// Prints "file:line: CHECK(condition) failed: values" on stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& values);

}  // namespace drama3

// CHECK(condition, values...): aborts with the joined values when the condition is false.
#define CHECK(condition, ...)                                                                       \
  do {                                                                                              \
    if (!(condition)) {                                                                             \
      ::drama3::check_failed(__FILE__, __LINE__, #condition, ::drama3::join(__VA_ARGS__));          \
    }                                                                                               \
  } while (false)

#ifdef NDEBUG
#define DCHECK(condition, ...) \
  do {                         \
  } while (false)
#else
#define DCHECK(condition, ...) CHECK(condition, __VA_ARGS__)
#endif
