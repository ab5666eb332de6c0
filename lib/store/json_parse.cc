// From JSON text to the tree: one scan for the limits, then nlohmann's event parser feeding the nodes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/base/error.h"
#include "lib/store/json_tree.h"

namespace drama3::detail {
namespace {

constexpr uint64_t kMaxKey = 0xffff;  // bytes of one key, what a node can count

// Printable ASCII of a parser's message, cut to one readable line.
std::string readable(std::string_view text) {
  constexpr size_t kLongest = 160;
  std::string out;
  for (const char c : text.substr(0, kLongest)) out += (c >= 0x20 && c < 0x7f) ? c : '?';
  return text.size() > kLongest ? out + "..." : out;
}

// Walks over text once, before the parser spends memory: bounds depth, token length and number of values,
// which it returns (an upper bound: one for the root, one for every comma and every opening bracket).
class LimitScan {
 public:
  LimitScan(const std::string& file, std::string_view text, const JsonLimits& limits)
      : file_(file), text_(text), limits_(limits) {}

  uint64_t count_values() {
    for (size_t at = 0; at < text_.size(); ++at) {
      const char c = text_[at];
      // The parser would take a NUL for the end of the text and a mark for nothing at all.
      if (c == '\0') refuse(at, "JSON text", "a NUL byte");
      if (c == '"') at = end_of_string(at);
      if (c == '"' || c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}') {
        token_begin_ = at + 1;
        count(c, at);
      } else if (at - token_begin_ >= kJsonMaxToken) {
        refuse(at, join("at most ", kJsonMaxToken, " bytes between two tokens"), "more");
      }
    }
    return values_;
  }

 private:
  [[noreturn]] void refuse(size_t at, const std::string& expected, const std::string& got) const {
    fail(file_, ": JSON, byte ", at, ": expected ", expected, ", got ", got);
  }

  // The position of the closing quote, or the last byte of an unclosed string.
  size_t end_of_string(size_t open) const {
    for (size_t at = open + 1; at < text_.size(); ++at) {
      if (text_[at] == '"') return at;
      if (text_[at] == '\0') refuse(at, "JSON text", "a NUL byte");
      if (text_[at] == '\\') ++at;
      if (at - open > kJsonMaxToken)
        refuse(open, join("a string of at most ", kJsonMaxToken, " bytes"), "more");
    }
    return text_.size() - 1;
  }

  void count(char c, size_t at) {
    if (c == ']' || c == '}') --depth_;
    if (c == '[' || c == '{') {
      if (++depth_ > kJsonMaxDepth) refuse(at, join("a depth of at most ", kJsonMaxDepth), join(depth_));
    }
    if ((c == ',' || c == '[' || c == '{') && ++values_ > limits_.values) {
      refuse(at, join("at most ", limits_.values, " values"), "more");
    }
  }

  const std::string& file_;
  std::string_view text_;
  const JsonLimits& limits_;
  size_t token_begin_ = 0;
  int64_t depth_ = 0;
  uint64_t values_ = 1;
};

// Receives the events of nlohmann's parser and appends nodes.
class TreeBuilder {
 public:
  using number_integer_t = int64_t;
  using number_unsigned_t = uint64_t;
  using number_float_t = double;
  using string_t = std::string;
  using binary_t = nlohmann::json::binary_t;

  explicit TreeBuilder(JsonContent& content) : content_(content) {}

  bool null() { return append(JsonKind::kNull, 0); }
  bool boolean(bool value) { return append(JsonKind::kBoolean, value); }
  bool number_integer(int64_t value) { return append(JsonKind::kNegative, std::bit_cast<uint64_t>(value)); }
  bool number_unsigned(uint64_t value) { return append(JsonKind::kUnsigned, value); }
  bool number_float(double value, const std::string&) {
    return append(JsonKind::kReal, std::bit_cast<uint64_t>(value));
  }
  bool string(const std::string& text) {
    const uint64_t begin = content_.arena.size();
    content_.arena += text;
    return append(JsonKind::kText, begin << 32 | text.size());
  }
  bool binary(const binary_t&) { return false; }
  bool start_object(size_t) { return open(JsonKind::kObject); }
  bool start_array(size_t) { return open(JsonKind::kArray); }
  bool end_array() { return close(); }
  bool end_object() {
    refuse_duplicate_keys(open_.back().node);
    return close();
  }
  bool key(const std::string& text) {
    if (text.size() > kMaxKey) {
      fail(content_.file, ": JSON: expected a key of at most ", kMaxKey, " bytes, got ", text.size());
    }
    key_begin_ = static_cast<uint32_t>(content_.arena.size());
    key_size_ = static_cast<uint16_t>(text.size());
    content_.arena += text;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) {
    const std::string_view what = error.what();
    const size_t tag_end = what.find("] ");
    fail(content_.file, ": JSON, byte ", position, ": expected valid JSON, got ",
         readable(tag_end == std::string_view::npos ? what : what.substr(tag_end + 2)));
  }

 private:
  struct Open {
    uint32_t node;
    uint32_t last_child;
  };

  bool append(JsonKind kind, uint64_t value) {
    const auto index = static_cast<uint32_t>(content_.nodes.size());
    JsonNode node;
    node.kind = kind;
    node.value = value;
    if (!open_.empty()) {
      Open& parent = open_.back();
      node.parent = parent.node;
      node.key_begin = std::exchange(key_begin_, 0);
      node.key_size = std::exchange(key_size_, 0);
      if (parent.last_child != 0) content_.nodes[parent.last_child].next = index;
      parent.last_child = index;
      ++content_.nodes[parent.node].value;
    }
    content_.nodes.push_back(node);
    return true;
  }
  bool open(JsonKind kind) {
    const auto index = static_cast<uint32_t>(content_.nodes.size());
    append(kind, 0);
    open_.push_back({index, 0});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  // Sorted by hash, then text, so that no choice of keys makes this slower than a sort.
  void refuse_duplicate_keys(uint32_t object) {
    keys_.clear();
    const JsonNode& parent = content_.nodes[object];
    if (parent.value < 2) return;
    for (uint32_t child = object + 1; child != 0; child = content_.nodes[child].next) {
      const std::string_view key = content_.key(content_.nodes[child]);
      keys_.emplace_back(std::hash<std::string_view>{}(key), key);
    }
    std::sort(keys_.begin(), keys_.end());
    const auto twice = std::adjacent_find(keys_.begin(), keys_.end());
    if (twice != keys_.end()) {
      fail(content_.file, ": JSON: expected each key once in an object, got \"", readable(twice->second),
           "\" twice");
    }
  }

  JsonContent& content_;
  std::vector<Open> open_;
  std::vector<std::pair<size_t, std::string_view>> keys_;
  uint32_t key_begin_ = 0;
  uint16_t key_size_ = 0;
};

}  // namespace

void parse_json(JsonContent& content, std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    fail(content.file, ": JSON: expected at most ", limits.bytes, " bytes, got ", text.size());
  }
  if (text.starts_with("\xEF\xBB\xBF")) {
    fail(content.file, ": JSON, byte 0: expected JSON text, got a byte order mark");
  }
  content.nodes.reserve(LimitScan(content.file, text, limits).count_values());
  content.arena.reserve(text.size());  // decoded text is never longer than its spelling
  TreeBuilder builder(content);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
}

}  // namespace drama3::detail
