// Tensors of our own run, kept under the reference's names and written as safetensors.
#pragma once

#include <map>
#include <string>

#include "apps/oracle_tensor.h"

namespace drama3 {

// Keeps nothing until it is enabled.
class Dump {
 public:
  void enable() { enabled_ = true; }
  bool enabled() const { return enabled_; }

  void add(const std::string& file, const std::string& name, FloatTensor tensor);
  void add(const std::string& file, const std::string& name, IntTensor tensor);
  void add_bytes(const std::string& file, const std::string& name, IntTensor tensor);  // stored as U8
  // Writes every file into the folder, which is made when it is absent, beside the reference's JSON
  // documents: what stands there then is a reference folder itself (without the sampler's probabilities).
  void write(const std::string& folder, const std::string& reference) const;

 private:
  struct ByteTensor {
    Shape shape;
    std::vector<uint8_t> values;
  };
  struct File {
    std::map<std::string, FloatTensor> floats;
    std::map<std::string, IntTensor> ints;
    std::map<std::string, ByteTensor> bytes;
  };
  bool enabled_ = false;
  std::map<std::string, File> files_;
};

}  // namespace drama3
