// Fuzz target: any bytes as tokenizer.json are refused by an Error or give a tokenizer that loses no text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lib/base/error.h"
#include "lib/engine/tokenizer_file.h"
#include "lib/text/nfc.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace drama3;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static constexpr std::string_view kText = "Hello, w\u00f6rld e\u0301 <|im_end|> 12\n\n\u4f60\u597d x";
  try {
    const TokenizerTable table =
        read_tokenizer_table(JsonDocument::parse("tokenizer.json", bytes, kTokenizerLimits));
    const Tokenizer tokenizer(table);
    const std::string expected = table.nfc ? to_nfc(kText) : std::string(kText);
    if (tokenizer.decode(tokenizer.encode_plain(kText)) != expected) std::abort();
    tokenizer.decode(tokenizer.encode(kText));
  } catch (const Error&) {
  }
  return 0;
}
