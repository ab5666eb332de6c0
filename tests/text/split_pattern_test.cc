// Split patterns cut a text into pieces that join to it, under limits that hostile patterns cannot pass.
#include "lib/text/split_pattern.h"

#include <doctest/doctest.h>

#include <vector>

#include "lib/base/error.h"

using namespace drama3;

namespace {

using Pieces = std::vector<std::string>;

Pieces split(const std::string& pattern, const std::string& text) {
  Pieces pieces;
  SplitPattern(pattern, "tokenizer.json").split(text, [&](std::string_view piece) {
    pieces.emplace_back(piece);
  });
  return pieces;
}

std::string error_of(const std::string& pattern, const std::string& text) {
  try {
    split(pattern, text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("matches and the stretches between them are the pieces") {
  CHECK(split("\\d+", "ab12c3") == Pieces{"ab", "12", "c", "3"});
  CHECK(split("\\d+", "ab") == Pieces{"ab"});
  CHECK(split("\\d+", "").empty());
}

TEST_CASE("classes and caseless groups follow Unicode") {
  CHECK(split("\\p{L}+", "\u00e9t\u00e9\u4f60 7") == Pieces{"\u00e9t\u00e9\u4f60", " 7"});
  CHECK(split("\\s", "a\u00a0b\u3000c") == Pieces{"a", "\u00a0", "b", "\u3000", "c"});
  CHECK(split("(?i:'s)", "a'\u017f") == Pieces{"a", "'\u017f"});
}

TEST_CASE("U+180E is no white space, as in the tokenizers library") {
  CHECK(split("\\s", "a\u180eb\u180e") == Pieces{"a\u180eb\u180e"});
}

TEST_CASE("empty matches split nothing") { CHECK(split("x*", "a\u00e9xxb") == Pieces{"a\u00e9", "xx", "b"}); }

TEST_CASE("a broken pattern is refused with its place") {
  CHECK(error_of("a(b", "a")
            .find("tokenizer.json: split pattern: expected a regular expression, got an error at "
                  "character 3") == 0);
  CHECK(error_of("\\C", "a").find("expected a regular expression") != std::string::npos);
  CHECK(error_of(std::string(20000, 'a'), "a").find("at most 16384 bytes, got 20000") != std::string::npos);
  CHECK(error_of("(?:a{60000}){60000}", "a").find("expected a regular expression") != std::string::npos);
}

TEST_CASE("a pattern that backtracks without end is stopped") {
  CHECK(error_of("(?:x+x+)+[yw]", std::string(60, 'x')).find("expected to match within 10000000 steps") !=
        std::string::npos);
}

TEST_CASE("a match may be as long as the text") {
  const std::string blanks(1 << 20, ' ');
  CHECK(split("\\s+(?!\\S)|\\s+", blanks + "x") == Pieces{blanks.substr(1), " ", "x"});
  CHECK(split("(?:a|b)+", std::string(1 << 16, 'a')).size() == 1);
}
