// A single safetensors file, mapped, as a source of tensors under their stored names.
#pragma once

#include <string>

#include "lib/base/file.h"
#include "lib/store/tensor_map.h"

namespace drama3 {

class TensorFile : public TensorMap {
 public:
  // Opens and checks the file; the tensors themselves are not read.
  explicit TensorFile(const std::string& path);

  // The tensor of this name whatever its type and shape; Error when absent.
  View tensor_named(const std::string& name);

 private:
  MappedFile file_;
};

}  // namespace drama3
