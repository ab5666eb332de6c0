// Reading text from outside: invalid bytes and NUL are named, BOM and CR disappear, all else stays.
#include "lib/text/utf8.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"

using namespace drama3;
using namespace std::string_literals;

namespace {

std::string error_of(const std::string& raw) {
  try {
    clean_text(raw, "bad.txt");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("invalid UTF-8 is refused with its byte offset") {
  CHECK(error_of("Good \xff\xfe morning \xc3") ==
        "bad.txt: expected UTF-8 text, got byte 0xff at byte offset 5; convert it to UTF-8 first");
  for (const std::string bytes :
       {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xe4\xbd", "\xc3", "\xf8\x88\x80\x80\x80"}) {
    CAPTURE(bytes);
    CHECK(error_of("Good " + bytes).find("at byte offset 5;") != std::string::npos);
  }
  CHECK(error_of("\xef\xbb\xbf"
                 "abc\xff")
            .find("at byte offset 6;") != std::string::npos);  // in the raw bytes
}

TEST_CASE("the ends of the UTF-8 range are valid") {
  for (const std::string text : {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                                 "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    CHECK(clean_text(text, "text") == text);
  }
}

TEST_CASE("NUL is refused with its byte offset") {
  CHECK(error_of("cut\0here"s) ==
        "bad.txt: expected text without NUL, got a NUL at byte offset 3; remove it");
}

TEST_CASE("a leading byte order mark goes, a later one stays") {
  CHECK(clean_text("\xef\xbb\xbfHi", "text") == "Hi");
  CHECK(clean_text("a\xef\xbb\xbf", "text") == "a\xef\xbb\xbf");
  CHECK(clean_text("\xef\xbb\xbf\xef\xbb\xbfHi", "text") == "\xef\xbb\xbfHi");
}

TEST_CASE("a line end is a space, a blank line ends the sentence") {
  CHECK(clean_text("One.\r\nTwo.\rThree.\n\n  Four.\r", "text") == "One. Two. Three. Four. ");
  CHECK(clean_text("a soft \n\tbreak,  kept  blanks", "text") == "a soft break,  kept  blanks");
  CHECK(clean_text("Heading\r\n \r\nBody\n\n", "text") == "Heading. Body ");
  CHECK(clean_text("\xe7\xac\xac\n\n\xe4\xba\x8c\xe3\x80\x82\n\nc", "text") ==
        "\xe7\xac\xac. \xe4\xba\x8c\xe3\x80\x82 c");
  CHECK(clean_text("\r\r\n\n", "text") == " ");
}

TEST_CASE("trimming takes Unicode white space and nothing else") {
  CHECK(trim(" \t\n\u00a0\u3000\u2028word\u1680\u2009\u0085 ") == "word");
  CHECK(trim("\u200bword\u200b") == "\u200bword\u200b");
  CHECK(trim("\u4f60\u597d") == "\u4f60\u597d");
  CHECK(trim(" \u00a0") == "");
  CHECK(trim("") == "");
}

TEST_CASE("letters, digits, money and mathematics can be spoken; punctuation, emoji and blanks cannot") {
  for (int32_t point : std::initializer_list<int32_t>{'a', 'Z', '7', '$', '+', '=', '%', '&', '@', 0x20ac,
                                                      0x4f60, 0x3042, 0x2167, 0xbd, 0xb0}) {
    CAPTURE(point);
    CHECK(is_speakable(point));
  }
  for (int32_t point :
       std::initializer_list<int32_t>{'.', '?', '!', ',', '-', '|', '~', '*', '"', ' ', '\n', 0x200b, 0x200d,
                                      0x3002, 0x1f642, 0x1f3fb, 0xfe0f, 0x301}) {
    CAPTURE(point);
    CHECK(!is_speakable(point));
  }
}
