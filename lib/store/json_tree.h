// The storage behind JsonDocument: nodes in file order and one arena of decoded text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/store/json_reader.h"

namespace drama3::detail {

// 24 bytes; the first child of a container is the node after it.
struct JsonNode {
  uint64_t value =
      0;  // boolean, integer, bits of a double, text offset << 32 | length, or number of children
  uint32_t key_begin = 0;  // in the arena
  uint32_t parent = 0;
  uint32_t next = 0;  // next child of the same parent; 0: the last
  uint16_t key_size = 0;
  JsonKind kind = JsonKind::kNull;
};
static_assert(sizeof(JsonNode) == 24);

struct JsonContent {
  std::string file;
  std::vector<JsonNode> nodes;
  std::string arena;

  std::string_view key(const JsonNode& node) const {
    return std::string_view(arena).substr(node.key_begin, node.key_size);
  }
  std::string_view text(const JsonNode& node) const {
    return std::string_view(arena).substr(node.value >> 32, node.value & 0xffffffffu);
  }
};

// Fills content.nodes and content.arena from text; Error when a rule of JsonDocument is broken.
void parse_json(JsonContent& content, std::string_view text, const JsonLimits& limits);

}  // namespace drama3::detail
