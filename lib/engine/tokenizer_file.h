// Reading of tokenizer.json into the plain table that lib/text builds its tokenizer from.
#pragma once

#include <string>

#include "lib/store/json_reader.h"
#include "lib/text/tokenizer.h"

namespace drama3 {

// The table in the document. Error naming file and JSON path for every setting that would change the ids and
// that lib/text does not carry out: another model than BPE, dropout, prefixes and suffixes, byte fallback,
// another normaliser than NFC, another pre-tokenizer than Split (isolated) and ByteLevel, added tokens that
// strip blanks or match whole words only.
TokenizerTable read_tokenizer_table(const JsonDocument& document);

// The tokenizer in a tokenizer.json file.
Tokenizer load_tokenizer(const std::string& path);

}  // namespace drama3
