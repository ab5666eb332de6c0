// Lengths of a text in words, seconds and rows, and the refusal of what does not fit.
#pragma once

#include <cstdint>
#include <string_view>

namespace drama3 {

// Words as a reader counts them: runs without white space that hold something speakable; ideographs and kana
// count one each.
int64_t count_words(std::string_view text);

// Estimated seconds of speech at a calm reading speed, for progress bars and runaway checks; at least 0.3.
double expected_seconds(std::string_view text);

// Seconds in which nobody speaks the text: a tenth of what its letters, digits and characters should take.
// Stops and marks, however many, count nothing.
double shortest_seconds(std::string_view text);

// About how many English words fit into so many seconds of speech, for messages about limits.
int64_t words_in_seconds(double seconds);

// Error with both numbers when prompt rows + frames exceed the rows that the caches hold.
void check_rows_fit(int64_t prompt_rows, int64_t max_frames, int64_t cache_rows);

}  // namespace drama3
