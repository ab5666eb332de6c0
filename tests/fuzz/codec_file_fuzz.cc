// Fuzz target: any bytes as codec.pth are refused by an Error, at open or when a tensor is read, or can be
// read whole.
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/error.h"
#include "lib/store/codec_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace drama3;
  try {
    CodecFile codec("codec.pth", std::as_bytes(std::span(data, size)));
    for (const std::string& name : codec.names()) codec.find_any(name);
    codec.refuse_non_finite();
  } catch (const Error&) {
  }
  return 0;
}
