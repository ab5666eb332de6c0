// The byte-level BPE: added tokens, normalisation, splitting, and merging through a heap.
#include "lib/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <unordered_map>

#include "lib/base/check.h"
#include "lib/base/error.h"
#include "lib/text/nfc.h"
#include "lib/text/split_pattern.h"
#include "lib/text/utf8.h"

namespace drama3 {

namespace {

constexpr uint32_t kNone = 0xffffffffu;

// GPT-2's table: the code point that stands for each byte in a vocabulary. Printable Latin-1 stands for
// itself, the other bytes take U+0100 and up in order.
std::array<int32_t, 256> byte_characters() {
  std::array<int32_t, 256> table{};
  int32_t next = 0x100;
  for (int32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    table[static_cast<size_t>(byte)] = printable ? byte : next++;
  }
  return table;
}

std::string byte_character(int byte) {
  static const std::array<int32_t, 256> kTable = byte_characters();
  std::string out;
  append_utf8(out, kTable[static_cast<size_t>(byte)]);
  return out;
}

// The bytes that a vocabulary entry stands for, or nothing when a character of it stands for no byte.
std::optional<std::string> bytes_of(std::string_view entry) {
  static const std::unordered_map<int32_t, char> kBytes = [] {
    std::unordered_map<int32_t, char> map;
    const std::array<int32_t, 256> table = byte_characters();
    for (size_t byte = 0; byte < table.size(); ++byte) map[table[byte]] = static_cast<char>(byte);
    return map;
  }();
  std::string bytes;
  for (size_t i = 0; i < entry.size();) {
    const CodePoint point = code_point_at(entry, i);
    const auto found = kBytes.find(point.value);
    if (found == kBytes.end()) return std::nullopt;
    bytes += found->second;
    i += point.bytes;
  }
  return bytes;
}

// Finds added tokens in a text: a trie over their bytes.
class TokenFinder {
 public:
  struct Hit {
    size_t begin = 0;
    size_t end = 0;
    uint32_t id = 0;
  };

  void add(std::string_view content, uint32_t id) {
    uint32_t node = 0;
    for (char c : content) {
      const auto [edge, fresh] = edges_.try_emplace(key(node, c), static_cast<uint32_t>(ids_.size()));
      if (fresh) ids_.push_back(kNone);
      node = edge->second;
    }
    ids_[node] = id;
  }

  bool empty() const { return edges_.empty(); }

  // The leftmost token at or after offset, the longest of those that begin there; nothing when there is none.
  std::optional<Hit> find(std::string_view text, size_t offset) const {
    if (empty()) return std::nullopt;
    for (size_t begin = offset; begin < text.size(); ++begin) {
      Hit hit{begin, begin, kNone};
      uint32_t node = 0;
      for (size_t i = begin; i < text.size(); ++i) {
        const auto edge = edges_.find(key(node, text[i]));
        if (edge == edges_.end()) break;
        node = edge->second;
        if (ids_[node] != kNone) hit = {begin, i + 1, ids_[node]};
      }
      if (hit.id != kNone) return hit;
    }
    return std::nullopt;
  }

 private:
  static uint64_t key(uint32_t node, char c) { return uint64_t{node} << 8 | static_cast<unsigned char>(c); }

  std::unordered_map<uint64_t, uint32_t> edges_;  // node and byte -> node
  std::vector<uint32_t> ids_{kNone};              // the token that ends at a node
};

// Calls gap(stretch) and token(id) over the text in order.
void walk(std::string_view text, const TokenFinder& finder, const std::function<void(std::string_view)>& gap,
          const std::function<void(uint32_t)>& token) {
  size_t taken = 0;
  while (const std::optional<TokenFinder::Hit> hit = finder.find(text, taken)) {
    if (hit->begin > taken) gap(text.substr(taken, hit->begin - taken));
    token(hit->id);
    taken = hit->end;
  }
  if (taken < text.size()) gap(text.substr(taken));
}

struct Merge {
  uint32_t rank = 0;
  uint32_t id = 0;  // what the pair becomes
};

uint64_t pair_key(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

}  // namespace

struct Tokenizer::Parts {
  using Ids = std::unordered_map<std::string, uint32_t>;

  std::string file;
  bool nfc = true;
  std::vector<SplitPattern> patterns;
  std::array<uint32_t, 256> byte_ids{};
  std::unordered_map<uint64_t, Merge> merges;       // by pair_key
  std::unordered_map<uint32_t, std::string> bytes;  // what each id decodes to
  Ids added_ids;                                    // by content
  TokenFinder raw;                                  // added tokens of the raw text
  TokenFinder normalized;                           // added tokens of the normalised text
  TokenFinder special;                              // all special ones
  uint32_t id_limit = 0;

  void take_id(uint32_t id, std::string_view entry, std::string decoded);
  Ids take_vocab(const TokenizerTable& table);
  void take_merges(const TokenizerTable& table, const Ids& ids);
  void take_added(const TokenizerTable& table, const Ids& ids);

  std::string normalize(std::string_view text) const { return nfc ? to_nfc(text) : std::string(text); }
  void encode_words(std::string_view text, size_t pattern, std::vector<int32_t>& out) const;
  void merge_word(std::string_view word, std::vector<int32_t>& out) const;
};

void Tokenizer::Parts::take_id(uint32_t id, std::string_view entry, std::string decoded) {
  if (id >= kTokenIdLimit) {
    fail(file, ": token '", entry, "': expected an id below ", kTokenIdLimit, ", got ", id);
  }
  if (!bytes.try_emplace(id, std::move(decoded)).second) {
    fail(file, ": token '", entry, "': expected an id of its own, got ", id, ", which another token has");
  }
  id_limit = std::max(id_limit, id + 1);
}

Tokenizer::Parts::Ids Tokenizer::Parts::take_vocab(const TokenizerTable& table) {
  Ids ids;
  ids.reserve(table.vocab.size());
  bytes.reserve(table.vocab.size() + table.added_tokens.size());
  std::unordered_map<std::string_view, uint32_t> added;
  for (const AddedToken& token : table.added_tokens) added[token.content] = token.id;
  for (const auto& [entry, id] : table.vocab) {
    std::optional<std::string> decoded = bytes_of(entry);
    if (const auto token = added.find(entry); token != added.end()) decoded = entry;
    if (!decoded || decoded->empty()) {
      fail(file, ": model.vocab: token '", entry, "' (id ", id,
           "): expected characters that stand for bytes, got others or none");
    }
    if (!ids.emplace(entry, id).second) fail(file, ": model.vocab: token '", entry, "' is given twice");
    take_id(id, entry, *std::move(decoded));
  }
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(byte_character(byte));
    if (found == ids.end()) {
      fail(file, ": model.vocab: expected a token for every byte, got none for byte ", byte, " ('",
           byte_character(byte), "')");
    }
    byte_ids[static_cast<size_t>(byte)] = found->second;
  }
  return ids;
}

void Tokenizer::Parts::take_merges(const TokenizerTable& table, const Ids& ids) {
  merges.reserve(table.merges.size());
  for (size_t rank = 0; rank < table.merges.size(); ++rank) {
    const auto& [left, right] = table.merges[rank];
    const auto id_of = [&](const std::string& token) {
      const auto found = ids.find(token);
      if (found == ids.end()) {
        fail(file, ": model.merges[", rank, "]: expected known tokens, got '", token,
             "', which model.vocab lacks");
      }
      return found->second;
    };
    const Merge merge{static_cast<uint32_t>(rank), id_of(left + right)};
    if (!merges.emplace(pair_key(id_of(left), id_of(right)), merge).second) {
      fail(file, ": model.merges[", rank, "]: the pair '", left, "' '", right, "' is given twice");
    }
  }
}

void Tokenizer::Parts::take_added(const TokenizerTable& table, const Ids& ids) {
  for (size_t i = 0; i < table.added_tokens.size(); ++i) {
    const AddedToken& token = table.added_tokens[i];
    if (token.content.empty()) fail(file, ": added_tokens[", i, "]: expected a content, got an empty one");
    if (!added_ids.emplace(token.content, token.id).second) {
      fail(file, ": added_tokens[", i, "]: token '", token.content, "' is given twice");
    }
    if (const auto known = ids.find(token.content); known == ids.end()) {
      take_id(token.id, token.content, token.content);
    } else if (known->second != token.id) {
      fail(file, ": added_tokens[", i, "]: token '", token.content, "': expected id ", known->second,
           " as in model.vocab, got ", token.id);
    }
    if (token.normalized) {
      normalized.add(normalize(token.content), token.id);
    } else {
      raw.add(token.content, token.id);
    }
    if (token.special) special.add(token.content, token.id);
  }
}

void Tokenizer::Parts::encode_words(std::string_view text, size_t pattern, std::vector<int32_t>& out) const {
  if (pattern == patterns.size()) {
    merge_word(text, out);
    return;
  }
  patterns[pattern].split(text, [&](std::string_view piece) { encode_words(piece, pattern + 1, out); });
}

// Merges the best-ranked pair first, the leftmost of equals, until no pair has a merge. The heap keeps old
// entries; one counts only if the pair that stands there now has the same rank.
void Tokenizer::Parts::merge_word(std::string_view word, std::vector<int32_t>& out) const {
  struct Symbol {
    uint32_t id, previous, next;
  };
  const auto size = static_cast<uint32_t>(word.size());
  std::vector<Symbol> symbols(size);
  for (uint32_t i = 0; i < size; ++i) {
    symbols[i] = {byte_ids[static_cast<unsigned char>(word[i])], i == 0 ? kNone : i - 1,
                  i + 1 == size ? kNone : i + 1};
  }
  const auto merge_at = [&](uint32_t at) -> const Merge* {
    if (symbols[at].id == kNone || symbols[at].next == kNone) return nullptr;
    const auto found = merges.find(pair_key(symbols[at].id, symbols[symbols[at].next].id));
    return found == merges.end() ? nullptr : &found->second;
  };
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> queue;  // rank, then position
  const auto enqueue = [&](uint32_t at) {
    if (const Merge* merge = merge_at(at)) queue.push(uint64_t{merge->rank} << 32 | at);
  };
  for (uint32_t i = 0; i < size; ++i) enqueue(i);
  while (!queue.empty()) {
    const auto rank = static_cast<uint32_t>(queue.top() >> 32);
    const auto at = static_cast<uint32_t>(queue.top());
    queue.pop();
    const Merge* merge = merge_at(at);
    if (merge == nullptr || merge->rank != rank) continue;
    Symbol& left = symbols[at];
    Symbol& right = symbols[left.next];
    left.id = merge->id;
    left.next = right.next;
    right.id = kNone;  // swallowed
    if (left.next != kNone) symbols[left.next].previous = at;
    enqueue(at);
    if (left.previous != kNone) enqueue(left.previous);
  }
  for (uint32_t at = 0; at != kNone && size > 0; at = symbols[at].next) {
    out.push_back(static_cast<int32_t>(symbols[at].id));
  }
}

Tokenizer::Tokenizer(const TokenizerTable& table) : parts_(std::make_unique<Parts>()) {
  parts_->file = table.file;
  parts_->nfc = table.nfc;
  for (const std::string& pattern : table.patterns) parts_->patterns.emplace_back(pattern, table.file);
  const Parts::Ids ids = parts_->take_vocab(table);
  parts_->take_merges(table, ids);
  parts_->take_added(table, ids);
}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> out;
  const auto take_token = [&](uint32_t id) { out.push_back(static_cast<int32_t>(id)); };
  const auto take_words = [&](std::string_view words) { parts_->encode_words(words, 0, out); };
  const auto take_gap = [&](std::string_view gap) {
    walk(parts_->normalize(gap), parts_->normalized, take_words, take_token);
  };
  walk(text, parts_->raw, take_gap, take_token);
  return out;
}

std::vector<int32_t> Tokenizer::encode_plain(std::string_view text) const {
  std::vector<int32_t> out;
  parts_->encode_words(parts_->normalize(text), 0, out);
  return out;
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string out;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto found = parts_->bytes.find(static_cast<uint32_t>(ids[i]));
    if (ids[i] < 0 || found == parts_->bytes.end()) {
      fail(parts_->file, ": decoding token ", i, ": expected an id of the vocabulary, got ", ids[i]);
    }
    out += found->second;
  }
  return out;
}

std::optional<int32_t> Tokenizer::added_token_id(std::string_view content) const {
  const auto found = parts_->added_ids.find(std::string(content));
  if (found == parts_->added_ids.end()) return std::nullopt;
  return static_cast<int32_t>(found->second);
}

std::optional<std::string> Tokenizer::find_special_token(std::string_view text) const {
  const std::optional<TokenFinder::Hit> hit = parts_->special.find(text, 0);
  if (!hit) return std::nullopt;
  return std::string(text.substr(hit->begin, hit->end - hit->begin));
}

int64_t Tokenizer::id_limit() const { return parts_->id_limit; }

}  // namespace drama3
