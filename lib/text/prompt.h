// The prompt: layout reference-bracket-v1, from text and reference transcripts to one id per row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/tokenizer.h"

namespace drama3 {

inline constexpr const char* kPromptLayout = "reference-bracket-v1";
inline constexpr int32_t kAudioRow = -1;  // the id of a row that holds a reference frame

// One recorded voice: what is said in it and how many frames it has.
struct PromptReference {
  std::string transcript;
  int64_t frames = 0;
};

// The ids of all rows: kAudioRow for each reference frame, in the order of the references. The text is
// trimmed; one that does not open with a speaker tag gets the tag of `speaker` in front, the transcript of
// reference i that of speaker i. No id of an added token but speaker tags comes from text or transcripts.
// Error for an empty text or transcript, a control token in one, more than 16 references, or a tokenizer
// without the layout's tokens.
std::vector<int32_t> build_prompt(const Tokenizer& tokenizer, std::string_view text,
                                  std::span<const PromptReference> references = {}, int speaker = 0);

// How many of those rows the text takes, its speaker tag included; the others do not depend on the text.
// A blank text takes the tag alone.
int64_t count_text_rows(const Tokenizer& tokenizer, std::string_view text, int speaker = 0);

}  // namespace drama3
