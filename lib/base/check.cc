// Reporting of a broken invariant.
#include "lib/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace drama3 {

void check_failed(const char* file, int line, const char* condition, const std::string& values) {
  std::fprintf(stderr, "%s:%d: INVARIANT(%s) failed: %s\n", file, line, condition, values.c_str());
  std::abort();
}

}  // namespace drama3
