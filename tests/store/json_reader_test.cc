// Strict JSON: each rule has a text that breaks only it; messages name file, path, expected and got.
#include "lib/store/json_reader.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "lib/base/error.h"

using namespace drama3;

namespace {

JsonDocument parsed(const std::string& text, const JsonLimits& limits = kConfigLimits) {
  return JsonDocument::parse("f.json", text, limits);
}

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string parse_error(const std::string& text, const JsonLimits& limits = kConfigLimits) {
  return error_of([&] { parsed(text, limits); });
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

}  // namespace

TEST_CASE("values come back as written") {
  const JsonDocument document = parsed(
      R"({"a": 1, "b": -2, "c": 2.5, "d": "h\u00e9\"", "e": [true, false, [], {}], "f": null, "g": {"x": "y"}})");
  const JsonValue root = document.root();
  CHECK(root.size() == 7);
  CHECK(root.at("a").as_unsigned() == 1);
  CHECK(root.at("a").as_number() == 1.0);
  CHECK(root.at("b").as_number() == -2.0);
  CHECK(root.at("c").as_number() == 2.5);
  CHECK(root.at("d").as_text() == "h\xc3\xa9\"");
  CHECK_FALSE(root.find("f"));
  CHECK_FALSE(root.find("none"));
  CHECK(root.at("g").at("x").as_text() == "y");
  std::vector<std::string> paths;
  for (const JsonValue value : root.at("e").elements()) paths.push_back(value.path());
  CHECK(paths == std::vector<std::string>{"e[0]", "e[1]", "e[2]", "e[3]"});
  std::string keys;
  for (const JsonValue value : root.members()) keys += value.key();
  CHECK(keys == "abcdefg");
  CHECK(parsed("18446744073709551615").root().as_unsigned() == 18446744073709551615u);
  CHECK(parsed(" 7 \n").root().as_unsigned() == 7);
}

TEST_CASE("integers are plain digits within their range") {
  for (const char* text :
       {"-1", "-0", "2.5", "1e3", "1.0", "18446744073709551616", "\"1\"", "null", "true", "[1]"}) {
    CAPTURE(text);
    const JsonDocument document = parsed(std::string("{\"n\": {\"m\": [") + text + "]}}");
    for (const JsonValue value : document.root().at("n").at("m").elements()) {
      const std::string message = error_of([&] { value.as_unsigned(); });
      CHECK(has(message, "f.json: n.m[0]: expected an integer of at least 0, got "));
    }
  }
  CHECK(error_of([] { parsed("65").root().as_unsigned(1, 64); }) ==
        "f.json: top level: expected an integer in 1..64, got 65");
  CHECK(has(error_of([] { parsed("0").root().as_unsigned(1, 64); }), "got 0"));
  CHECK(error_of([] { parsed("{\"t\": 1.5}").root().at("t").as_number(0, 1); }) ==
        "f.json: t: expected a number in 0..1, got the real number 1.5");
}

TEST_CASE("kinds are checked and absent keys named") {
  const JsonDocument document = parsed(R"({"a": {"b": 1}})");
  const JsonValue a = document.root().at("a");
  CHECK(error_of([&] { a.at("c"); }) == "f.json: a: expected the key \"c\", got an object without it");
  CHECK(error_of([&] { a.at("b").at("c"); }) == "f.json: a.b: expected an object, got 1");
  CHECK(error_of([&] { a.as_text(); }) == "f.json: a: expected text, got an object of 1");
  CHECK(error_of([&] { a.elements(); }) == "f.json: a: expected an array, got an object of 1");
  CHECK(error_of([&] { a.at("b").as_boolean(); }) == "f.json: a.b: expected true or false, got 1");
  CHECK(error_of([&] { a.at("b").size(); }) == "f.json: a.b: expected an array or object, got 1");
  CHECK(error_of([&] { a.refuse("something else"); }) ==
        "f.json: a: expected something else, got an object of 1");
}

TEST_CASE("an empty key is visible in paths") {
  CHECK(error_of([] { parsed(R"({"": {"": "x"}})").root().at("").at("").as_unsigned(); }) ==
        "f.json: \"\".\"\": expected an integer of at least 0, got \"x\"");
}

TEST_CASE("duplicate keys are refused at every level, also when escaped") {
  CHECK(has(parse_error(R"({"a": 1, "a": 2})"), "expected each key once in an object, got \"a\" twice"));
  CHECK(has(parse_error(R"({"x": [{"a": 1, "b": 3, "\u0061": 2}]})"), "\"a\" twice"));
  CHECK(parse_error(R"({"a": {"a": {"a": 1}}, "b": {"a": 1}})") == "");
}

TEST_CASE("what is not one JSON value is refused") {
  for (const std::string text :
       {"",    " ",       "{",         "[1,]", "{\"a\":}", "{} {}",       "1 2",    "[1] x", "{a: 1}",
        "'a'", "NaN",     "Infinity",  "-",    "01",       "+1",          "1.",     ".5",    "1e",
        "tru", "// c\n1", "/* c */ 1", "\"a",  "\"\\x\"",  "\"\\ud800\"", "\"\n\"", "]",     "[}"}) {
    CAPTURE(text);
    CHECK(has(parse_error(text), "f.json: JSON, byte "));
  }
  CHECK(has(parse_error(std::string("{}\0{}", 5)), "byte 2: expected JSON text, got a NUL byte"));
  CHECK(has(parse_error(std::string("\"\0\"", 3)), "got a NUL byte"));
  CHECK(has(parse_error("\xEF\xBB\xBF{}"), "byte order mark"));
  CHECK(has(parse_error("1e400"), "overflow"));
  CHECK(has(parse_error("-1e400"), "overflow"));
}

TEST_CASE("invalid UTF-8 is refused inside and outside of strings") {
  for (const char* bytes :
       {"\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"", "\xc3\xa9"}) {
    CHECK(has(parse_error(bytes), "f.json: JSON, byte "));
  }
  CHECK(parse_error("\"\xf0\x9f\x98\x80\"") == "");
}

TEST_CASE("depth, sizes and counts are bounded") {
  CHECK(parse_error(nested(kJsonMaxDepth)) == "");
  CHECK(has(parse_error(nested(kJsonMaxDepth + 1)), "expected a depth of at most 64, got 65"));
  CHECK(has(parse_error(nested(100000)), "expected a depth of at most 64"));
  CHECK(has(parse_error("[1,2]", {.bytes = 4, .values = 10}), "expected at most 4 bytes, got 5"));
  CHECK(parse_error("[1,2]", {.bytes = 5, .values = 3}) == "");
  CHECK(has(parse_error("[1,2]", {.bytes = 5, .values = 2}), "expected at most 2 values"));
  const JsonLimits wide{.bytes = 8 << 20, .values = 10};
  const std::string longest(kJsonMaxToken, 'a');
  CHECK(parse_error("\"" + longest + "\"", wide) == "");
  CHECK(has(parse_error("\"" + longest + "a\"", wide), "expected a string of at most 1048576 bytes"));
  CHECK(has(parse_error("[" + std::string(2 << 20, '1') + "]", wide), "between two tokens"));
  CHECK(has(parse_error("[" + std::string(2 << 20, ' ') + "]", wide), "between two tokens"));
  CHECK(
      has(parse_error("{\"" + std::string(70000, 'k') + "\": 1}", wide), "expected a key of at most 65535"));
}

TEST_CASE("errors hold no control characters and little of the file") {
  const std::string message =
      error_of([] { parsed("\"\\u0007" + std::string(1000, 'z') + "\"").root().as_unsigned(); });
  CHECK(message.size() < 150);
  CHECK_FALSE(has(message, "\x07"));
}

TEST_CASE("a document can be moved, and its values stay") {
  JsonDocument first = parsed("[5]");
  const JsonValue root = first.root();
  const JsonDocument second = std::move(first);
  for (const JsonValue value : root.elements()) CHECK(value.as_unsigned() == 5);
}

TEST_CASE("the golden tokenizer and index are read from their files") {
  const std::string folder = DRAMA3_TEST_DATA "/golden/tiny/";
  const JsonDocument tokenizer = JsonDocument::read(folder + "tokenizer.json", kTokenizerLimits);
  CHECK(tokenizer.root().at("model").at("vocab").size() > 500);
  const JsonDocument index = JsonDocument::read(folder + "model.safetensors.index.json", kIndexLimits);
  CHECK(index.root().at("weight_map").size() > 200);
  CHECK(has(error_of([&] { JsonDocument::read(folder, kConfigLimits); }), "got a folder"));
}

TEST_CASE("half a million entries are read within two seconds") {
  std::string text = "{\"vocab\": {";
  for (int i = 0; i < 250000; ++i)
    text += (i ? ",\n\"" : "\"") + std::string("token_") + std::to_string(i) + "\": " + std::to_string(i);
  text += "}, \"merges\": [";
  for (int i = 0; i < 250000; ++i)
    text += (i ? ",\n[\"left" : "[\"left") + std::to_string(i) + "\", \"right" + std::to_string(i) + "\"]";
  text += "]}";
  const auto begin = std::chrono::steady_clock::now();
  const JsonDocument document = parsed(text, kTokenizerLimits);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  MESSAGE(text.size(), " bytes in ", seconds.count(), " s");
  CHECK(document.root().at("vocab").size() == 250000);
  CHECK(seconds.count() < 2.0);
}
