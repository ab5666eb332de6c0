// Counting words, estimating speech time, refusing what the caches cannot hold.
#include "lib/text/limits.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "lib/base/error.h"
#include "lib/text/marks.h"
#include "lib/text/utf8.h"

namespace drama3 {

namespace {

// Reading speeds of audiobooks, rounded: 150 English words or 270 Chinese characters a minute.
constexpr double kWordsPerSecond = 2.5;
constexpr double kSecondsPerIdeograph = 0.22;
constexpr double kSecondsPerKana = 0.13;
constexpr double kSecondsPerHangul = 0.18;
constexpr double kSecondsPerDigit = 0.30;
constexpr double kSecondsPerLetter = 0.068;
constexpr double kSecondsPerStop = 0.25;
constexpr double kSecondsAtLeast = 0.3;
constexpr double kShortestShare = 0.1;

bool is_ideograph(int32_t point) {
  return (point >= 0x3400 && point <= 0x9fff) || (point >= 0xf900 && point <= 0xfaff) ||
         (point >= 0x20000 && point <= 0x3ffff);
}

bool is_kana(int32_t point) { return point >= 0x3041 && point <= 0x30ff; }

bool is_hangul(int32_t point) { return point >= 0xac00 && point <= 0xd7a3; }

double seconds_of(int32_t point, double seconds_per_stop) {
  if (is_ideograph(point)) return kSecondsPerIdeograph;
  if (is_kana(point)) return kSecondsPerKana;
  if (is_hangul(point)) return kSecondsPerHangul;
  switch (utf8proc_category(point)) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return kSecondsPerDigit;
    case UTF8PROC_CATEGORY_PO:  // full stops, commas and their like
      return seconds_per_stop;
    default:
      return is_speakable(point) ? kSecondsPerLetter : 0.0;
  }
}

// Seconds of what is read out, each stop counted as so many.
double seconds_read_out(std::string_view text, double seconds_per_stop) {
  const std::vector<Mark> marks = find_marks(text);
  auto mark = marks.begin();
  double seconds = 0.0;
  for (size_t i = 0; i < text.size();) {
    while (mark != marks.end() && (mark->begin < i || mark->kind == MarkKind::kWhisper)) ++mark;
    if (mark != marks.end() && mark->begin == i) {  // speaker tags and directions are not read out
      i = mark->end;
      continue;
    }
    const CodePoint point = code_point_at(text, i);
    seconds += seconds_of(point.value, seconds_per_stop);
    i += point.bytes;
  }
  return seconds;
}

}  // namespace

int64_t count_words(std::string_view text) {
  int64_t words = 0;
  bool counted = false;  // the run at hand has been counted
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    i += point.bytes;
    if (is_ideograph(point.value) || is_kana(point.value)) {
      ++words;
      counted = false;
    } else if (is_white_space(point.value)) {
      counted = false;
    } else if (!counted && is_speakable(point.value)) {
      ++words;
      counted = true;
    }
  }
  return words;
}

double expected_seconds(std::string_view text) {
  return std::max(seconds_read_out(text, kSecondsPerStop), kSecondsAtLeast);
}

double shortest_seconds(std::string_view text) { return kShortestShare * seconds_read_out(text, 0.0); }

int64_t words_in_seconds(double seconds) { return static_cast<int64_t>(seconds * kWordsPerSecond); }

void check_rows_fit(int64_t prompt_rows, int64_t max_frames, int64_t cache_rows) {
  if (prompt_rows <= cache_rows && max_frames <= cache_rows - prompt_rows) return;
  fail("text: expected at most ", cache_rows, " rows of prompt and frames, got ", prompt_rows, " + ",
       max_frames, "; shorten the text or lower the number of frames");
}

}  // namespace drama3
