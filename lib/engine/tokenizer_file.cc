// tokenizer.json in both published spellings of merges, checked setting by setting.
#include "lib/engine/tokenizer_file.h"

#include <utility>

namespace drama3 {

namespace {

constexpr size_t kAddedTokenBytes = 256;

// ByteLevel's own split pattern, used where a file has use_regex: published with GPT-2.
constexpr const char* kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// A flag that must hold the value when it is given at all.
void require_flag(const JsonValue& object, std::string_view key, bool expected) {
  const std::optional<JsonValue> flag = object.find(key);
  if (flag && flag->as_boolean() != expected) flag->refuse(expected ? "true" : "false");
}

// A text that must be empty or null when it is given at all.
void require_no_text(const JsonValue& object, std::string_view key) {
  const std::optional<JsonValue> text = object.find(key);
  if (text && !text->as_text().empty()) text->refuse("null or an empty text");
}

bool has_type(const JsonValue& object, std::string_view type) { return object.at("type").as_text() == type; }

void read_vocab(const JsonValue& model, TokenizerTable& table) {
  const JsonValue vocab = model.at("vocab");
  if (!vocab.is_object()) vocab.refuse("an object of tokens and ids");
  table.vocab.reserve(vocab.size());
  for (const JsonValue entry : vocab.members()) {
    table.vocab.emplace_back(entry.key(), static_cast<uint32_t>(entry.as_unsigned(0, kTokenIdLimit - 1)));
  }
}

// ["a", "b"] or "a b".
std::pair<std::string, std::string> read_merge(const JsonValue& merge) {
  if (merge.is_array()) {
    if (merge.size() != 2) merge.refuse("a pair of tokens");
    std::pair<std::string, std::string> pair;
    std::string* side = &pair.first;
    for (const JsonValue token : merge.elements()) {
      *side = token.as_text();
      side = &pair.second;
    }
    return pair;
  }
  const std::string_view text = merge.as_text();
  const size_t blank = text.find(' ');
  if (blank == std::string_view::npos || text.find(' ', blank + 1) != std::string_view::npos) {
    merge.refuse("two tokens with one space between");
  }
  return {std::string(text.substr(0, blank)), std::string(text.substr(blank + 1))};
}

void read_model(const JsonValue& model, TokenizerTable& table) {
  if (!has_type(model, "BPE")) model.at("type").refuse("\"BPE\"");
  if (const std::optional<JsonValue> dropout = model.find("dropout"); dropout && dropout->as_number() != 0) {
    dropout->refuse("null or 0");
  }
  require_no_text(model, "continuing_subword_prefix");
  require_no_text(model, "end_of_word_suffix");
  require_flag(model, "byte_fallback", false);
  require_flag(model, "ignore_merges", false);
  read_vocab(model, table);
  const JsonValue merges = model.at("merges");
  if (!merges.is_array()) merges.refuse("a list of merges");
  table.merges.reserve(merges.size());
  for (const JsonValue merge : merges.elements()) table.merges.push_back(read_merge(merge));
}

void read_added_tokens(const JsonValue& root, TokenizerTable& table) {
  const std::optional<JsonValue> tokens = root.find("added_tokens");
  if (!tokens) return;
  if (!tokens->is_array()) tokens->refuse("a list of tokens");
  for (const JsonValue token : tokens->elements()) {
    for (std::string_view flag : {"lstrip", "rstrip", "single_word"}) require_flag(token, flag, false);
    const auto is_set = [&](std::string_view flag) {
      const std::optional<JsonValue> value = token.find(flag);
      return value && value->as_boolean();
    };
    const JsonValue content = token.at("content");
    if (content.as_text().empty() || content.as_text().size() > kAddedTokenBytes) {
      content.refuse("1 to " + std::to_string(kAddedTokenBytes) + " bytes");
    }
    table.added_tokens.push_back(
        {.content = std::string(content.as_text()),
         .id = static_cast<uint32_t>(token.at("id").as_unsigned(0, kTokenIdLimit - 1)),
         .special = is_set("special"),
         .normalized = is_set("normalized")});
  }
}

// NFC alone, in a sequence of one, or nothing.
void read_normalizer(const JsonValue& root, TokenizerTable& table) {
  std::optional<JsonValue> normalizer = root.find("normalizer");
  table.nfc = normalizer.has_value();
  if (!normalizer) return;
  if (has_type(*normalizer, "Sequence")) {
    const JsonValue list = normalizer->at("normalizers");
    if (!list.is_array() || list.size() != 1) list.refuse("a list of one normaliser, NFC");
    normalizer = *list.elements().begin();
  }
  if (!has_type(*normalizer, "NFC")) normalizer->at("type").refuse("\"NFC\"");
}

// Adds the patterns of one pre-tokenizer; true when it maps bytes to characters, as the last one must.
bool read_pre_tokenizer(const JsonValue& step, TokenizerTable& table) {
  if (has_type(step, "Split")) {
    const JsonValue behavior = step.at("behavior");
    if (behavior.as_text() != "Isolated") behavior.refuse("\"Isolated\"");
    require_flag(step, "invert", false);
    table.patterns.emplace_back(step.at("pattern").at("Regex").as_text());
    return false;
  }
  if (!has_type(step, "ByteLevel")) step.at("type").refuse("\"Split\" or \"ByteLevel\"");
  require_flag(step, "add_prefix_space", false);
  const std::optional<JsonValue> use_regex = step.find("use_regex");  // the library's default is true
  if (!use_regex || use_regex->as_boolean()) table.patterns.emplace_back(kByteLevelPattern);
  return true;
}

void read_pre_tokenizers(const JsonValue& root, TokenizerTable& table) {
  const JsonValue top = root.at("pre_tokenizer");
  if (!has_type(top, "Sequence")) {
    if (!read_pre_tokenizer(top, table)) top.at("type").refuse("\"Sequence\" or \"ByteLevel\"");
    return;
  }
  const JsonValue steps = top.at("pretokenizers");
  bool bytes = false;
  for (const JsonValue step : steps.elements()) {
    if (bytes) step.refuse("nothing after ByteLevel");
    bytes = read_pre_tokenizer(step, table);
  }
  if (!bytes) steps.refuse("a ByteLevel at the end");
}

}  // namespace

TokenizerTable read_tokenizer_table(const JsonDocument& document) {
  const JsonValue root = document.root();
  TokenizerTable table;
  table.file = document.file();
  read_normalizer(root, table);
  read_pre_tokenizers(root, table);
  read_model(root.at("model"), table);
  read_added_tokens(root, table);
  return table;
}

Tokenizer load_tokenizer(const std::string& path) {
  return Tokenizer(read_tokenizer_table(JsonDocument::read(path, kTokenizerLimits)));
}

}  // namespace drama3
