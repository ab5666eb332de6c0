// Memory of a backend taken piece by piece when something is opened, and given back all at once.
#pragma once

#include <vector>

#include "lib/ops/ops.h"

namespace drama3 {

class Workspace {
 public:
  explicit Workspace(Ops& ops) : ops_(ops) {}
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // Zero-filled and dense; valid as long as the workspace lives.
  View take(DType type, const Shape& shape) {
    owned_.push_back(ops_.allocate(type, shape));
    bytes_ += owned_.back().view.bytes();
    return owned_.back().view;
  }
  size_t bytes() const { return bytes_; }
  Ops& ops() const { return ops_; }

 private:
  Ops& ops_;
  std::vector<Buffer> owned_;
  size_t bytes_ = 0;
};

}  // namespace drama3
