// The golden checkpoint's tokenizer and JSON lists, for the tests of this folder.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/engine/tokenizer_file.h"

inline std::string golden_path(const std::string& name) {
  return std::string(DRAMA3_TEST_DATA) + "/golden/" + name;
}

inline nlohmann::json golden_json(const std::string& name) {
  std::ifstream file(golden_path(name), std::ios::binary);
  return nlohmann::json::parse(file);
}

inline const drama3::Tokenizer& golden_tokenizer() {
  static const drama3::Tokenizer tokenizer = drama3::load_tokenizer(golden_path("tiny/tokenizer.json"));
  return tokenizer;
}

// The golden tokenizer with these merges before its own, their results added to the vocabulary.
inline drama3::Tokenizer tokenizer_with(const std::vector<std::pair<std::string, std::string>>& merges) {
  drama3::TokenizerTable table = drama3::read_tokenizer_table(
      drama3::JsonDocument::read(golden_path("tiny/tokenizer.json"), drama3::kTokenizerLimits));
  table.merges.insert(table.merges.begin(), merges.begin(), merges.end());
  uint32_t id = 3000;
  for (const auto& [left, right] : merges) table.vocab.emplace_back(left + right, id++);
  return drama3::Tokenizer(table);
}
