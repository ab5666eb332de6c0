// Fuzz target: any bytes as a pickle are refused by an Error or give tensors that lie within their storages.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "lib/base/error.h"
#include "lib/store/pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace drama3;
  try {
    for (const PickledTensor& tensor : parse_state_dict("f.pkl", std::as_bytes(std::span(data, size)))) {
      if (tensor.shape.elements() == 0) continue;
      auto last = tensor.offset;
      for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
        last += static_cast<uint64_t>((tensor.shape[axis] - 1) * tensor.strides[axis]);
      }
      if (last >= tensor.storage_elements) std::abort();
    }
  } catch (const Error&) {
  }
  return 0;
}
