// The header of a safetensors file.
#include "lib/store/safetensors_writer.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "lib/base/check.h"

namespace drama3 {

std::string safetensors_header(std::span<const SafetensorsTensor> tensors) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::object();
  uint64_t end = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    INVARIANT(tensor.bytes.size() == static_cast<size_t>(tensor.shape.elements()) * dtype_size(tensor.type),
              tensor.name, ": ", tensor.bytes.size(), " bytes for ", tensor.shape.text());
    nlohmann::ordered_json shape = nlohmann::ordered_json::array();
    for (int axis = 0; axis < tensor.shape.rank(); ++axis) shape.push_back(tensor.shape[axis]);
    const uint64_t begin = end;
    end += tensor.bytes.size();
    entries[tensor.name] = {
        {"dtype", dtype_name(tensor.type)}, {"shape", shape}, {"data_offsets", {begin, end}}};
  }
  std::string header = entries.dump();
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file(8, '\0');
  for (size_t i = 0; i < file.size(); ++i) file[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file + header;
}

}  // namespace drama3
