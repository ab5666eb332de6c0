// UTF-8 validation and clean-up, white space and what can be spoken, by utf8proc's Unicode tables.
#include "lib/text/utf8.h"

#include <utf8proc.h>

#include "lib/base/check.h"
#include "lib/base/error.h"

namespace drama3 {

namespace {

// The code point at offset, or a negative value when the bytes there are not UTF-8.
utf8proc_ssize_t decode(std::string_view text, size_t offset, utf8proc_int32_t& value) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + offset;
  return utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - offset), &value);
}

}  // namespace

CodePoint code_point_at(std::string_view text, size_t offset) {
  utf8proc_int32_t value = 0;
  const utf8proc_ssize_t bytes = offset < text.size() ? decode(text, offset, value) : 0;
  INVARIANT(bytes > 0, "no code point at byte ", offset, " of ", text.size());
  return {value, static_cast<size_t>(bytes)};
}

void append_utf8(std::string& out, int32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t count = utf8proc_encode_char(code_point, bytes);
  INVARIANT(count > 0, "code point ", code_point);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

size_t find_invalid_utf8(std::string_view text) {
  size_t offset = 0;
  while (offset < text.size()) {
    if (static_cast<unsigned char>(text[offset]) < 0x80) {
      ++offset;
      continue;
    }
    utf8proc_int32_t value = 0;
    const utf8proc_ssize_t bytes = decode(text, offset, value);
    if (bytes <= 0) return offset;
    offset += static_cast<size_t>(bytes);
  }
  return std::string_view::npos;
}

namespace {

// The last code point of valid UTF-8 that is not empty.
int32_t last_code_point(std::string_view text) {
  size_t begin = text.size() - 1;
  while ((static_cast<unsigned char>(text[begin]) & 0xC0u) == 0x80u) --begin;
  return code_point_at(text, begin).value;
}

// Every run of blanks that holds a line end as one space; a blank line after a word also ends the sentence.
std::string join_lines(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  size_t i = 0;
  while (i < raw.size()) {
    const size_t begin = i;
    int lines = 0;
    for (; i < raw.size() && std::string_view(" \t\r\n").find(raw[i]) != std::string_view::npos; ++i) {
      const bool pair = raw[i] == '\r' && i + 1 < raw.size() && raw[i + 1] == '\n';
      lines += (raw[i] == '\n' || raw[i] == '\r') && !pair ? 1 : 0;
    }
    if (lines == 0) {
      if (i == begin) ++i;
      text += raw.substr(begin, i - begin);
      continue;
    }
    if (lines > 1 && i < raw.size() && !text.empty() && is_speakable(last_code_point(text))) text += '.';
    text += ' ';
  }
  return text;
}

}  // namespace

std::string clean_text(std::string_view raw, std::string_view source) {
  if (const size_t offset = find_invalid_utf8(raw); offset != std::string_view::npos) {
    static constexpr char kHex[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(raw[offset]);
    const char hex[] = {kHex[byte >> 4], kHex[byte & 15], 0};
    fail(source, ": expected UTF-8 text, got byte 0x", hex, " at byte offset ", offset,
         "; convert it to UTF-8 first");
  }
  if (const size_t offset = raw.find('\0'); offset != std::string_view::npos) {
    fail(source, ": expected text without NUL, got a NUL at byte offset ", offset, "; remove it");
  }
  if (raw.starts_with("\xef\xbb\xbf")) raw.remove_prefix(3);
  return join_lines(raw);
}

bool is_white_space(int32_t code_point) {
  switch (code_point) {
    case 0x20:
    case 0x85:
    case 0xa0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202f:
    case 0x205f:
    case 0x3000:
      return true;
    default:
      return (code_point >= 0x09 && code_point <= 0x0d) || (code_point >= 0x2000 && code_point <= 0x200a);
  }
}

std::string_view trim(std::string_view text) {
  while (!text.empty()) {
    const CodePoint first = code_point_at(text, 0);
    if (!is_white_space(first.value)) break;
    text.remove_prefix(first.bytes);
  }
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while ((static_cast<unsigned char>(text[last]) & 0xc0) == 0x80) --last;
    if (!is_white_space(code_point_at(text, last).value)) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

bool is_speakable(int32_t code_point) {
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
    case UTF8PROC_CATEGORY_SC:
      return true;
    case UTF8PROC_CATEGORY_SM:  // but not the two that draw tables and rules
      return code_point != '|' && code_point != '~';
    default:
      return code_point == '%' || code_point == '&' || code_point == '@' || code_point == '#' ||
             code_point == 0xa7 || code_point == 0xb0 || code_point == 0x2030;  // section, degree, per mille
  }
}

}  // namespace drama3
