// Strict JSON: a compact read-only tree and accessors whose errors name file, JSON path, expected and got.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace drama3 {

// What one document may cost; exceeding a limit is an Error before memory is spent on it.
struct JsonLimits {
  uint64_t bytes = 1 << 20;
  uint64_t values = 1 << 17;  // 24 bytes of tree for each value
};
inline constexpr JsonLimits kConfigLimits{};
inline constexpr JsonLimits kIndexLimits{.bytes = 64 << 20, .values = 1 << 20};
inline constexpr JsonLimits kTokenizerLimits{.bytes = 64 << 20, .values = 1 << 21};
inline constexpr int kJsonMaxDepth = 64;
inline constexpr uint64_t kJsonMaxToken = 1 << 20;  // bytes of one string, number or stretch of blanks

enum class JsonKind : uint8_t { kNull, kBoolean, kUnsigned, kNegative, kReal, kText, kArray, kObject };

class JsonRange;
namespace detail {
struct JsonContent;
}

// One value of a document; valid as long as the document lives. Every accessor throws Error on another kind
// or a value out of range.
class JsonValue {
 public:
  JsonKind kind() const;
  bool is_object() const { return kind() == JsonKind::kObject; }
  bool is_array() const { return kind() == JsonKind::kArray; }
  bool is_text() const { return kind() == JsonKind::kText; }

  // The member of this object under the key; Error when absent.
  JsonValue at(std::string_view key) const;
  // The member of this object under the key; nothing when it is absent or null.
  std::optional<JsonValue> find(std::string_view key) const;
  // The elements of this array, in order.
  JsonRange elements() const;
  // The members of this object, in the file's order; each knows its key().
  JsonRange members() const;
  // The number of elements or members of this array or object.
  uint64_t size() const;
  // The key of this value in its object; empty for elements and the root.
  std::string_view key() const;

  // A number written as plain digits; -1, 2.5, 1e3 and 2^64 are refused.
  uint64_t as_unsigned(uint64_t least = 0, uint64_t most = std::numeric_limits<uint64_t>::max()) const;
  // Any finite number.
  double as_number(double least = std::numeric_limits<double>::lowest(),
                   double most = std::numeric_limits<double>::max()) const;
  bool as_boolean() const;
  std::string_view as_text() const;

  // "text_config.layer_types[2]".
  std::string path() const;
  // Throws the Error "FILE: PATH: expected EXPECTED, got (this value)", for rules of the caller's own.
  [[noreturn]] void refuse(const std::string& expected) const;

 private:
  friend class JsonDocument;
  friend class JsonRange;
  JsonValue(const detail::JsonContent* content, uint32_t node) : content_(content), node_(node) {}
  void require(JsonKind kind, const char* expected) const;
  std::string description() const;

  const detail::JsonContent* content_;
  uint32_t node_;
};

// The children of one array or object, for range-for.
class JsonRange {
 public:
  class Iterator {
   public:
    JsonValue operator*() const { return {content_, node_}; }
    Iterator& operator++();
    bool operator!=(const Iterator& other) const { return node_ != other.node_; }

   private:
    friend class JsonRange;
    Iterator(const detail::JsonContent* content, uint32_t node) : content_(content), node_(node) {}
    const detail::JsonContent* content_;
    uint32_t node_;
  };
  Iterator begin() const { return {content_, first_}; }
  Iterator end() const { return {content_, 0}; }  // no child is node 0

 private:
  friend class JsonValue;
  JsonRange(const detail::JsonContent* content, uint32_t first) : content_(content), first_(first) {}
  const detail::JsonContent* content_;
  uint32_t first_;
};

// A parsed document. Refused: duplicate keys at any level, depth above 64, bytes after the value, a byte
// order mark, NUL, invalid UTF-8, numbers that are not finite, whatever exceeds the limits.
class JsonDocument {
 public:
  // file is for messages only.
  static JsonDocument parse(const std::string& file, std::string_view text, const JsonLimits& limits);
  // Reads and parses a regular file.
  static JsonDocument read(const std::string& path, const JsonLimits& limits);

  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  JsonValue root() const;
  const std::string& file() const;

 private:
  explicit JsonDocument(std::unique_ptr<detail::JsonContent> content);
  std::unique_ptr<detail::JsonContent> content_;
};

}  // namespace drama3
