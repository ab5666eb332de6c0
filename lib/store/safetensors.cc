// Reads and checks a safetensors header.
#include "lib/store/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>

#include "lib/base/checked.h"
#include "lib/base/error.h"
#include "lib/store/json_reader.h"
#include "lib/store/lfs_pointer.h"

namespace drama3 {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeader = 100'000'000;
// A tensor needs at least six values of the tree: this many values hold every published checkpoint many times
// over.
constexpr JsonLimits kHeaderLimits{.bytes = kMaxHeader, .values = 1 << 20};

// The length field, checked against the bytes that follow it.
uint64_t header_length(const std::string& file, std::span<const std::byte> bytes) {
  if (bytes.size() < kLengthBytes) {
    fail(file, ": safetensors: expected at least ", kLengthBytes, " bytes, got ", bytes.size());
  }
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<uint64_t>(bytes[i]);
  if (length > kMaxHeader) {
    fail(file, ": safetensors header length: expected at most ", kMaxHeader, ", got ", length);
  }
  if (length > bytes.size() - kLengthBytes) {
    fail(file, ": safetensors header: expected ", length, " bytes, got a file with ",
         bytes.size() - kLengthBytes, " after the length field; the file is cut, download it again");
  }
  return length;
}

// The JSON text of the header without its padding, which is blanks only.
std::string_view header_text(const std::string& file, std::span<const std::byte> bytes, uint64_t length) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  if (!text.starts_with('{'))
    fail(file, ": safetensors header: expected it to begin with {, got something else");
  const std::string_view json = text.substr(0, text.find_last_not_of(' ') + 1);
  if (!json.ends_with('}'))
    fail(file, ": safetensors header: expected } and blanks at its end, got something else");
  return json;
}

DType parse_dtype(const JsonValue& value) {
  constexpr std::array kKnown = {DType::kF64,    DType::kF32, DType::kF16, DType::kBF16,
                                 DType::kF8E4M3, DType::kI64, DType::kI32, DType::kI16,
                                 DType::kI8,     DType::kU8,  DType::kBool};
  const std::string_view text = value.as_text();
  for (const DType type : kKnown) {
    if (dtype_name(type) == text) return type;
  }
  std::string names;
  for (const DType type : kKnown) names += (names.empty() ? "" : ", ") + std::string(dtype_name(type));
  value.refuse("one of the dtypes " + names);
}

Shape parse_shape(const JsonValue& value) {
  if (!value.is_array() || value.size() > kMaxRank)
    value.refuse(join("an array of at most ", kMaxRank, " sizes"));
  Shape shape;
  for (const JsonValue dim : value.elements()) {
    shape.append(static_cast<int64_t>(dim.as_unsigned(0, std::numeric_limits<int64_t>::max())));
  }
  return shape;
}

// product(shape) * dtype size, or nothing when it does not fit 63 bits.
std::optional<uint64_t> stored_bytes(const Shape& shape, DType type) {
  std::array<uint64_t, kMaxRank + 1> factors{};
  for (int axis = 0; axis < shape.rank(); ++axis)
    factors[static_cast<size_t>(axis)] = static_cast<uint64_t>(shape[axis]);
  factors[static_cast<size_t>(shape.rank())] = dtype_size(type);
  const auto bytes = checked_product(std::span(factors).first(static_cast<size_t>(shape.rank()) + 1));
  if (bytes && *bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return bytes;
}

// One member of the header; begin is still counted from the start of the data.
SafetensorsEntry parse_entry(const std::string& file, const JsonValue& value) {
  if (!value.is_object() || value.size() != 3)
    value.refuse("an object of exactly dtype, shape and data_offsets");
  SafetensorsEntry entry;
  entry.name = value.key();
  entry.type = parse_dtype(value.at("dtype"));
  entry.shape = parse_shape(value.at("shape"));
  const JsonValue offsets = value.at("data_offsets");
  if (!offsets.is_array() || offsets.size() != 2) offsets.refuse("an array of begin and end");
  std::array<uint64_t, 2> range{};
  size_t index = 0;
  for (const JsonValue offset : offsets.elements()) range[index++] = offset.as_unsigned();
  const auto [begin, end] = range;
  // A range past the end of the file is refused with the layout, where the file's size is named.
  if (begin > end) fail(file, ": ", offsets.path(), ": expected begin <= end, got ", begin, " and ", end);
  entry.begin = begin;
  entry.bytes = end - begin;
  const std::optional<uint64_t> wanted = stored_bytes(entry.shape, entry.type);
  if (!wanted || *wanted != entry.bytes) {
    fail(file, ": tensor ", value.path(), ": expected ", wanted ? join(*wanted) : "more than 2^63",
         " bytes for ", dtype_name(entry.type), " ", entry.shape.text(), ", got ", entry.bytes);
  }
  return entry;
}

void check_metadata(const JsonValue& metadata) {
  for (const JsonValue member : metadata.members()) member.as_text();
}

// Sorted by offset, the tensors must touch exactly, from the first byte of the data to the last.
void check_layout(const std::string& file, std::vector<SafetensorsEntry>& entries, uint64_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.bytes < b.bytes;
  });
  uint64_t end = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != end) {
      fail(file, ": tensor ", entry.name, ": expected its data to begin at ", end,
           " where the tensor before it ends, got ", entry.begin,
           entry.begin < end ? " (an overlap)" : " (a hole)");
    }
    end += entry.bytes;
  }
  if (end != data_bytes) {
    fail(file, ": safetensors data: expected ", end, " bytes, got ", data_bytes,
         end > data_bytes ? "; the file is cut, download it again" : "");
  }
}

}  // namespace

std::vector<SafetensorsEntry> parse_safetensors(const std::string& file, std::span<const std::byte> bytes) {
  refuse_lfs_pointer(file, bytes);
  const uint64_t length = header_length(file, bytes);
  const std::string_view text = header_text(file, bytes, length);
  const uint64_t data_begin = kLengthBytes + length;
  const uint64_t data_bytes = bytes.size() - data_begin;

  const JsonDocument header = JsonDocument::parse(file, text, kHeaderLimits);
  std::vector<SafetensorsEntry> entries;
  entries.reserve(header.root().size());
  for (const JsonValue member : header.root().members()) {
    if (member.key() == "__metadata__") {
      check_metadata(member);
    } else {
      entries.push_back(parse_entry(file, member));
    }
  }
  check_layout(file, entries, data_bytes);
  for (SafetensorsEntry& entry : entries) entry.begin += data_begin;
  return entries;
}

}  // namespace drama3
