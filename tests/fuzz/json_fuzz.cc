// Fuzz target: any bytes as JSON are refused by an Error or give a tree in which every value has a kind and a
// path.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lib/base/error.h"
#include "lib/store/json_reader.h"

namespace {

using drama3::JsonValue;

// Walks the whole tree, at most kJsonMaxDepth deep; returns the number of values.
uint64_t count(const JsonValue& value) {
  uint64_t values = 1;
  if (value.is_object()) {
    for (const JsonValue member : value.members()) values += count(member);
  } else if (value.is_array()) {
    for (const JsonValue element : value.elements()) values += count(element);
  } else if (value.path().empty()) {
    std::abort();
  }
  return values;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace drama3;
  try {
    const JsonDocument document =
        JsonDocument::parse("f.json", {reinterpret_cast<const char*>(data), size}, kConfigLimits);
    if (count(document.root()) > kConfigLimits.values) std::abort();
    document.root().as_unsigned();
  } catch (const Error&) {
  }
  return 0;
}
