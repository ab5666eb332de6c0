// Writing of codec.pth: a zip of raw storages and the pickle of a state dict over them.
#pragma once

#include <string>
#include <vector>

#include "lib/tensor/view.h"

namespace drama3 {

struct NamedTensor {
  std::string name;
  View view;  // dense
};

// F32 tensors only. The data of every storage is 64-byte aligned, as in files that torch.save wrote.
void write_codec_file(const std::string& path, const std::vector<NamedTensor>& tensors);

}  // namespace drama3
