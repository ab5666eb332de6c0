// Byte-level BPE: text -> token ids -> text, exactly as the tokenizers library does it for such files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace drama3 {

inline constexpr uint32_t kTokenIdLimit = 1u << 24;  // ids above are taken for a damaged file

// A token that is found in the text itself, before anything else.
struct AddedToken {
  std::string content;
  uint32_t id = 0;
  bool special = false;     // a control token: never spoken
  bool normalized = false;  // found in the normalised text instead of the raw one
};

// What a tokenizer.json says, as plain values; lib/engine/tokenizer_file.h fills it.
struct TokenizerTable {
  std::string file;                                         // named in errors
  std::vector<std::pair<std::string, uint32_t>> vocab;      // byte characters -> id
  std::vector<std::pair<std::string, std::string>> merges;  // best first
  std::vector<AddedToken> added_tokens;
  bool nfc = true;                    // NFC before splitting
  std::vector<std::string> patterns;  // split patterns, each applied to the pieces of the one before
};

// Immutable once built; encode and decode may be called from several threads at once.
class Tokenizer {
 public:
  // Error naming file and item for: an id used twice or out of range, a byte without a token, a vocabulary
  // entry that is not made of byte characters, a merge of unknown tokens or given twice, an added token that
  // is empty or given twice, a pattern that does not compile.
  explicit Tokenizer(const TokenizerTable& table);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // The ids of valid UTF-8 with added tokens recognised: leftmost first, longest first. O(n log n).
  // Error when a pattern exceeds its match limit.
  std::vector<int32_t> encode(std::string_view text) const;

  // The ids of valid UTF-8 taken as plain text: no added token is recognised in it.
  std::vector<int32_t> encode_plain(std::string_view text) const;

  // The bytes behind the ids, added tokens by their content; a character that the ids hold only in part stays
  // partial. Error for an id that has no token.
  std::string decode(const std::vector<int32_t>& ids) const;

  // The id of an added token by its content, or nothing.
  std::optional<int32_t> added_token_id(std::string_view content) const;

  // The leftmost special token inside text, or nothing.
  std::optional<std::string> find_special_token(std::string_view text) const;

  // One more than the highest id: what an embedding table must hold.
  int64_t id_limit() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace drama3
