// Fuzz target: any bytes as config.json or generation_config.json are refused by an Error or give checked
// structs.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lib/base/error.h"
#include "lib/engine/model_config.h"
#include "lib/engine/tokenizer_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace drama3;
  static const Tokenizer tokenizer = load_tokenizer(DRAMA3_TEST_DATA "/golden/tiny/tokenizer.json");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    parse_generation_config(JsonDocument::parse("generation_config.json", text, kConfigLimits));
  } catch (const Error&) {
  }
  try {
    const ModelConfig config =
        parse_model_config(JsonDocument::parse("config.json", text, kConfigLimits), tokenizer);
    if (config.max_positions < 1) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
