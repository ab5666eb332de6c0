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
