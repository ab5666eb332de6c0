// Memory that owns itself: a view of it, and the owner that gives it back to its backend.
#pragma once

#include <memory>

#include "lib/tensor/view.h"

namespace drama3 {

// Freed when the last copy of `owner` goes; `view` covers all of it and is dense.
struct Buffer {
  View view;
  std::shared_ptr<void> owner;
};

}  // namespace drama3
