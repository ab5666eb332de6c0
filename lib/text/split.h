// Lossless splitting of a long text into pieces that fit a budget of tokens.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/text/tokenizer.h"

namespace drama3 {

inline constexpr int64_t kLeastPieceRows = 32;  // any code point, normalised, with its speaker tag fits

// One piece: a stretch of the text that was split.
struct TextPiece {
  std::string_view text;
  int speaker = 0;         // in force where the piece begins; build_prompt takes it
  int64_t rows = 0;        // count_text_rows of the piece
  bool has_speech = true;  // false: nothing to speak in it, leave it out
};

// The pieces of a text that check_speech_text takes, each of at most `budget` rows; their texts joined are
// the text. A text that fits is one piece. Otherwise each piece takes as much as fits and ends at the best
// kind of boundary in reach: sentence, clause, word, grapheme cluster, code point. A whisper pair that is
// longer than the budget is cut without being closed and opened again. Error for a budget below
// kLeastPieceRows.
std::vector<TextPiece> split_text(const Tokenizer& tokenizer, std::string_view text, int64_t budget);

}  // namespace drama3
