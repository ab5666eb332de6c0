// Accessors of JsonValue and their errors.
#include "lib/store/json_reader.h"

#include <bit>
#include <span>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/store/json_tree.h"
#include "lib/store/lfs_pointer.h"

namespace drama3 {
namespace {

using detail::JsonNode;

constexpr size_t kLongestKey = 200;  // tensor names reach 80
constexpr size_t kLongestText = 60;

// At most longest bytes of a file's text for a message, cut between characters, without control characters.
std::string clipped(std::string_view text, size_t longest) {
  size_t end = std::min(text.size(), longest);
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  std::string out;
  for (const char c : text.substr(0, end))
    out += (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) ? '?' : c;
  return end < text.size() ? out + "..." : out;
}

}  // namespace

JsonKind JsonValue::kind() const { return content_->nodes[node_].kind; }

std::string_view JsonValue::key() const { return content_->key(content_->nodes[node_]); }

void JsonValue::require(JsonKind wanted, const char* expected) const {
  if (kind() != wanted) refuse(expected);
}

JsonValue JsonValue::at(std::string_view wanted) const {
  for (const JsonValue member : members()) {
    if (member.key() == wanted) return member;
  }
  fail(content_->file, ": ", path(), ": expected the key \"", wanted, "\", got an object without it");
}

std::optional<JsonValue> JsonValue::find(std::string_view wanted) const {
  for (const JsonValue member : members()) {
    if (member.key() != wanted) continue;
    if (member.kind() == JsonKind::kNull) return std::nullopt;
    return member;
  }
  return std::nullopt;
}

JsonRange JsonValue::elements() const {
  require(JsonKind::kArray, "an array");
  return {content_, content_->nodes[node_].value == 0 ? 0 : node_ + 1};
}

JsonRange JsonValue::members() const {
  require(JsonKind::kObject, "an object");
  return {content_, content_->nodes[node_].value == 0 ? 0 : node_ + 1};
}

uint64_t JsonValue::size() const {
  if (!is_array() && !is_object()) refuse("an array or object");
  return content_->nodes[node_].value;
}

uint64_t JsonValue::as_unsigned(uint64_t least, uint64_t most) const {
  const JsonNode& node = content_->nodes[node_];
  if (node.kind != JsonKind::kUnsigned || node.value < least || node.value > most) {
    if (most == std::numeric_limits<uint64_t>::max()) refuse(join("an integer of at least ", least));
    refuse(join("an integer in ", least, "..", most));
  }
  return node.value;
}

double JsonValue::as_number(double least, double most) const {
  const JsonNode& node = content_->nodes[node_];
  double value = 0;
  switch (node.kind) {
    case JsonKind::kUnsigned:
      value = static_cast<double>(node.value);
      break;
    case JsonKind::kNegative:
      value = static_cast<double>(std::bit_cast<int64_t>(node.value));
      break;
    case JsonKind::kReal:
      value = std::bit_cast<double>(node.value);
      break;
    default:
      refuse("a number");
  }
  if (value < least || value > most) refuse(join("a number in ", least, "..", most));
  return value;
}

bool JsonValue::as_boolean() const {
  require(JsonKind::kBoolean, "true or false");
  return content_->nodes[node_].value != 0;
}

std::string_view JsonValue::as_text() const {
  require(JsonKind::kText, "text");
  return content_->text(content_->nodes[node_]);
}

std::string JsonValue::path() const {
  if (node_ == 0) return "top level";
  std::string out;
  for (uint32_t at = node_; at != 0; at = content_->nodes[at].parent) {
    const JsonNode& node = content_->nodes[at];
    if (content_->nodes[node.parent].kind == JsonKind::kObject) {
      const std::string_view key = content_->key(node);
      out = join(node.parent == 0 ? "" : ".", key.empty() ? "\"\"" : clipped(key, kLongestKey), out);
      continue;
    }
    uint64_t ordinal = 0;
    for (uint32_t before = node.parent + 1; before != at; before = content_->nodes[before].next) ++ordinal;
    out = join("[", ordinal, "]", out);
  }
  return out;
}

std::string JsonValue::description() const {
  const JsonNode& node = content_->nodes[node_];
  switch (node.kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBoolean:
      return node.value != 0 ? "true" : "false";
    case JsonKind::kUnsigned:
      return join(node.value);
    case JsonKind::kNegative:
      return join(std::bit_cast<int64_t>(node.value));
    case JsonKind::kReal:
      return join("the real number ", std::bit_cast<double>(node.value));
    case JsonKind::kText:
      return join("\"", clipped(content_->text(node), kLongestText), "\"");
    case JsonKind::kArray:
      return join("an array of ", node.value);
    case JsonKind::kObject:
      return join("an object of ", node.value);
  }
  return "?";
}

void JsonValue::refuse(const std::string& expected) const {
  fail(content_->file, ": ", path(), ": expected ", expected, ", got ", description());
}

JsonRange::Iterator& JsonRange::Iterator::operator++() {
  node_ = content_->nodes[node_].next;
  return *this;
}

JsonDocument::JsonDocument(std::unique_ptr<detail::JsonContent> content) : content_(std::move(content)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

JsonDocument JsonDocument::parse(const std::string& file, std::string_view text, const JsonLimits& limits) {
  auto content = std::make_unique<detail::JsonContent>();
  content->file = file;
  detail::parse_json(*content, text, limits);
  return JsonDocument(std::move(content));
}

JsonDocument JsonDocument::read(const std::string& path, const JsonLimits& limits) {
  const std::vector<std::byte> bytes = read_file(path, limits.bytes);
  refuse_lfs_pointer(path, bytes);
  return parse(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, limits);
}

JsonValue JsonDocument::root() const { return {content_.get(), 0}; }
const std::string& JsonDocument::file() const { return content_->file; }

}  // namespace drama3
