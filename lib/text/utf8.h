// Reading text from outside: the one policy for argument, file and stdin, and code point properties.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace drama3 {

// One code point and the bytes it takes.
struct CodePoint {
  int32_t value = 0;
  size_t bytes = 0;
};

// The code point that starts at offset of valid UTF-8; offset is inside the text.
CodePoint code_point_at(std::string_view text, size_t offset);

// Appends one code point as UTF-8.
void append_utf8(std::string& out, int32_t code_point);

// The offset of the first byte that is not part of valid UTF-8 (overlong forms, surrogates and values above
// U+10FFFF are invalid), or npos.
size_t find_invalid_utf8(std::string_view text);

// The text behind raw bytes, the same for every way in: a leading byte order mark is dropped, a line end (LF,
// CRLF or CR) with the blanks around it becomes one space, a blank line after a word a full stop and a space
// (it ends the sentence); all else is kept byte by byte. Error naming source and byte offset (counted in the
// raw bytes) for invalid UTF-8 and for NUL.
std::string clean_text(std::string_view raw, std::string_view source);

// Unicode White_Space (no-break and ideographic spaces included, zero-width space not).
bool is_white_space(int32_t code_point);

// The text without Unicode white space at both ends.
std::string_view trim(std::string_view text);

// Letters, digits, currency and mathematical signs, and the signs that have a spoken name (% & @ # and the
// like); punctuation, emoji, blanks and controls are not.
bool is_speakable(int32_t code_point);

}  // namespace drama3
