// Every rule of tokenizer.json is broken once, alone, and refused by file and item; both spellings of merges
// work.
#include "lib/engine/tokenizer_file.h"

#include <doctest/doctest.h>

#include <functional>

#include "lib/base/error.h"
#include "tests/text/golden_tokenizer.h"

using namespace drama3;
using nlohmann::json;

namespace {

Tokenizer tokenizer_from(const std::string& text) {
  return Tokenizer(read_tokenizer_table(JsonDocument::parse("t.json", text, kTokenizerLimits)));
}

const json& golden() {
  static const json document = golden_json("tiny/tokenizer.json");
  return document;
}

// The error for the golden file after one change; empty when it is taken.
std::string error_after(const std::function<void(json&)>& change) {
  json document = golden();
  change(document);
  try {
    tokenizer_from(document.dump());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Whether the error names the file and holds this part.
bool names(const std::string& error, const std::string& part) {
  INFO(error);
  const bool good = error.find("t.json: ") == 0 && error.find(part) != std::string::npos;
  CHECK_MESSAGE(good, error, " | ", part);
  return good;
}

json& split_step(json& document) { return document["pre_tokenizer"]["pretokenizers"][0]; }
json& byte_step(json& document) { return document["pre_tokenizer"]["pretokenizers"][1]; }

}  // namespace

TEST_CASE("merges written as 'a b' give the same tokenizer") {
  json document = golden();
  for (json& merge : document["model"]["merges"]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  const Tokenizer tokenizer = tokenizer_from(document.dump());
  for (const json& entry : golden_json("tokenizer.json")) {
    CHECK(tokenizer.encode(entry["text"].get<std::string>()) == entry["ids"].get<std::vector<int32_t>>());
  }
}

TEST_CASE("settings that are off or absent are taken") {
  CHECK(error_after([](json& d) { d["model"]["continuing_subword_prefix"] = ""; }) == "");
  CHECK(error_after([](json& d) { d["model"]["dropout"] = 0.0; }) == "");
  CHECK(error_after([](json& d) { d["model"].erase("byte_fallback"); }) == "");
  CHECK(error_after([](json& d) { d["normalizer"] = nullptr; }) == "");
  CHECK(error_after([](json& d) {
          d["normalizer"] = {{"type", "Sequence"}, {"normalizers", {d["normalizer"]}}};
        }) == "");
  CHECK(error_after([](json& d) { d["pre_tokenizer"] = json(byte_step(d)); }) == "");
}

TEST_CASE("without a normaliser decomposed letters stay decomposed") {
  json document = golden();
  document["normalizer"] = nullptr;
  const Tokenizer tokenizer = tokenizer_from(document.dump());
  CHECK(tokenizer.decode(tokenizer.encode("e\u0301")) == "e\u0301");
}

TEST_CASE("a ByteLevel with its own pattern splits by GPT-2's") {
  json document = golden();
  document["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  const TokenizerTable table =
      read_tokenizer_table(JsonDocument::parse("t.json", document.dump(), kTokenizerLimits));
  REQUIRE(table.patterns.size() == 1);
  CHECK(table.patterns[0].starts_with("'s|'t|'re"));
}

TEST_CASE("an added token of the normalised text is found after normalisation") {
  json document = golden();
  document["added_tokens"].push_back(
      {{"id", 2000}, {"content", "caf\u00e9"}, {"special", false}, {"normalized", true}});
  const Tokenizer tokenizer = tokenizer_from(document.dump());
  CHECK(tokenizer.encode("cafe\u0301") == std::vector<int32_t>{2000});
  CHECK(tokenizer.id_limit() == 2001);
}

TEST_CASE("of added tokens that begin together the longest is taken") {
  json document = golden();
  for (const auto& [id, content] :
       {std::pair(2000, "<a"), std::pair(2001, "<ab>"), std::pair(2002, "ab>c")}) {
    document["added_tokens"].push_back({{"id", id}, {"content", content}, {"special", true}});
  }
  const Tokenizer tokenizer = tokenizer_from(document.dump());
  CHECK(tokenizer.encode("<ab>c") == std::vector<int32_t>{2001, 66});
  CHECK(tokenizer.encode("<ax") == std::vector<int32_t>{2000, 87});
}

TEST_CASE("settings that would change the ids are refused") {
  names(error_after([](json& d) { d["model"]["type"] = "WordPiece"; }), "model.type: expected \"BPE\"");
  names(error_after([](json& d) { d["model"]["dropout"] = 0.1; }), "model.dropout: expected null or 0");
  names(error_after([](json& d) { d["model"]["end_of_word_suffix"] = "</w>"; }), "model.end_of_word_suffix");
  names(error_after([](json& d) { d["model"]["byte_fallback"] = true; }),
        "model.byte_fallback: expected false");
  names(error_after([](json& d) { d["model"]["ignore_merges"] = true; }),
        "model.ignore_merges: expected false");
  names(error_after([](json& d) { d["normalizer"]["type"] = "NFKC"; }), "normalizer.type: expected \"NFC\"");
  names(error_after([](json& d) { split_step(d)["behavior"] = "Removed"; }),
        "behavior: expected \"Isolated\"");
  names(error_after([](json& d) { split_step(d)["invert"] = true; }), "invert: expected false");
  names(error_after([](json& d) { split_step(d)["pattern"] = {{"String", " "}}; }), "Regex");
  names(error_after([](json& d) { split_step(d)["pattern"]["Regex"] = "(("; }), "split pattern");
  names(error_after([](json& d) { split_step(d)["type"] = "Punctuation"; }),
        "type: expected \"Split\" or \"ByteLevel\"");
  names(error_after([](json& d) { byte_step(d)["add_prefix_space"] = true; }),
        "add_prefix_space: expected false");
  names(error_after([](json& d) { d["pre_tokenizer"]["pretokenizers"].erase(1); }),
        "expected a ByteLevel at the end");
  names(error_after([](json& d) { d["pre_tokenizer"]["pretokenizers"].push_back(split_step(d)); }),
        "nothing after");
  names(error_after([](json& d) { d["pre_tokenizer"] = json(split_step(d)); }), "pre_tokenizer.type");
  for (const std::string flag : {"lstrip", "rstrip", "single_word"}) {
    names(error_after([&](json& d) { d["added_tokens"][3][flag] = true; }),
          "added_tokens[3]." + flag + ": expected false");
  }
}

TEST_CASE("broken vocabularies are refused by the token") {
  names(error_after([](json& d) { d["model"]["vocab"]["!"] = -1; }), "model.vocab.!: expected");
  names(error_after([](json& d) { d["model"]["vocab"]["!"] = 2.5; }), "model.vocab.!: expected");
  names(error_after([](json& d) { d["model"]["vocab"]["!"] = 1u << 24; }), "model.vocab.!: expected");
  names(error_after([](json& d) { d["model"]["vocab"]["!"] = 1; }), "expected an id of its own, got 1");
  names(error_after([](json& d) { d["model"]["vocab"].erase("!"); }), "none for byte 33 ('!')");
  names(error_after([](json& d) { d["model"]["vocab"]["\u4f60"] = 5000; }), "token '\u4f60' (id 5000)");
  names(error_after([](json& d) { d["model"]["vocab"][""] = 5000; }), "token '' (id 5000)");
  names(error_after([](json& d) { d["model"]["vocab"] = json::array(); }), "model.vocab: expected an object");
  names(error_after([](json& d) { d["model"].erase("vocab"); }), "vocab");
  std::string twice = golden().dump();
  twice.replace(twice.find("\"vocab\":{"), 9, "\"vocab\":{\"!\":0,");
  CHECK_THROWS_AS(tokenizer_from(twice), Error);
}

TEST_CASE("broken merges are refused by their place") {
  names(error_after([](json& d) {
          d["model"]["merges"][7] = {"zq", "x"};
        }),
        "model.merges[7]: expected known tokens, got 'zqx'");
  names(error_after([](json& d) { d["model"]["merges"][8] = d["model"]["merges"][7]; }),
        "model.merges[8]: the pair");
  names(error_after([](json& d) { d["model"]["merges"][7] = {"a"}; }),
        "model.merges[7]: expected a pair of tokens");
  names(error_after([](json& d) {
          d["model"]["merges"][7] = {"a", "b", "c"};
        }),
        "model.merges[7]: expected a pair");
  names(error_after([](json& d) { d["model"]["merges"][7] = {"a", 1}; }), "model.merges[7][1]");
  names(error_after([](json& d) { d["model"]["merges"][7] = "ab"; }), "model.merges[7]: expected two tokens");
  names(error_after([](json& d) { d["model"]["merges"][7] = "a b c"; }),
        "model.merges[7]: expected two tokens");
  names(error_after([](json& d) { d["model"]["merges"] = "a b"; }), "model.merges: expected a list");
}

TEST_CASE("broken added tokens are refused by their place") {
  names(error_after([](json& d) { d["added_tokens"][2]["content"] = ""; }),
        "added_tokens[2].content: expected 1 to 256");
  names(error_after([](json& d) { d["added_tokens"][2]["content"] = std::string(257, 'x'); }),
        "added_tokens[2].content");
  names(error_after([](json& d) { d["added_tokens"][2]["content"] = "<|im_start|>"; }),
        "added_tokens[2]: token '<|im_start|>' is given twice");
  names(error_after([](json& d) { d["added_tokens"][2]["id"] = 747; }), "expected an id of its own, got 747");
  names(error_after([](json& d) { d["added_tokens"][2]["content"] = "se"; }), "token 'se': expected id");
  names(error_after([](json& d) { d["added_tokens"][2].erase("id"); }), "added_tokens[2]");
  names(error_after([](json& d) { d["added_tokens"] = 5; }), "added_tokens: expected a list");
}

TEST_CASE("every truncation at a sixteenth is refused") {
  const std::string text = golden().dump();
  for (size_t part = 0; part < 16; ++part) {
    CHECK_THROWS_AS(tokenizer_from(text.substr(0, text.size() * part / 16)), Error);
  }
}

TEST_CASE("flipped bits give an error or a tokenizer that works") {
  const std::string text = golden().dump();
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::string flipped = text;
    const size_t at = static_cast<size_t>(seed) * 2654435761u % flipped.size();
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << seed % 8));
    try {
      const Tokenizer tokenizer = tokenizer_from(flipped);
      CHECK(!tokenizer.encode("Hello, world! <|im_end|> 12").empty());
    } catch (const Error&) {
    }
  }
}
