// Fuzz target: any bytes as safetensors are refused by an Error or give tensors that lie end to end in the
// file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "lib/base/error.h"
#include "lib/store/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace drama3;
  try {
    uint64_t sum = 0;
    for (const SafetensorsEntry& entry :
         parse_safetensors("f.safetensors", std::as_bytes(std::span(data, size)))) {
      if (entry.begin > size || entry.bytes > size - entry.begin) std::abort();
      if (static_cast<uint64_t>(entry.shape.elements()) * dtype_size(entry.type) != entry.bytes) std::abort();
      sum += entry.bytes;
    }
    if (sum > size) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
