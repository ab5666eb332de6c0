// Marks inside the text: speaker tags, directions, whisper pairs, control tokens and markup that is not ours.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drama3 {

inline constexpr int kSpeakers = 16;

enum class MarkKind { kSpeaker, kDirection, kWhisper };

// One mark: bytes [begin, end) of the text. A speaker tag "<|speaker:3|>" carries its number; a direction is
// "[sighs]" with its brackets (one line, at most kDirectionBytes); a whisper is the whole pair
// "<whisper>..</whisper>". Whispers may hold directions and speaker tags.
struct Mark {
  MarkKind kind = MarkKind::kSpeaker;
  size_t begin = 0;
  size_t end = 0;
  int speaker = 0;
};

inline constexpr size_t kDirectionBytes = 200;

// "<|speaker:3|>"; speaker is 0..15.
std::string speaker_tag(int speaker);

// The speaker of a tag that the text opens with, or nothing.
std::optional<int> leading_speaker(std::string_view text);

// All marks by rising begin, outer before inner.
std::vector<Mark> find_marks(std::string_view text);

// Error, naming the token and what the text is, when text holds anything that is or looks like a control
// token:
// "<|semantic:", "<|speaker:" that is not a tag of speakers 0..15, or any "<|name|>". One rule for every
// tokenizer, so that a text is refused or taken whatever the checkpoint's vocabulary lists.
void refuse_control_tokens(std::string_view text, std::string_view what);

// True when something can be spoken: speakable code points other than speaker tags.
bool has_speech(std::string_view text);

// Error "WHAT: nothing to speak" for empty, blank or mark-only text, and the refusal of control tokens; needs
// no model.
void check_speech_text(std::string_view text, std::string_view what);

// "speakers 0, 2; directions [sighs] x2, [pause]; whisper x1": what was recognised, empty when nothing was.
std::string describe_marks(std::string_view text);

// A remark for text that looks like SSML ("<speak", "<break", "<prosody", ...): it is read out as it stands.
std::optional<std::string> markup_remark(std::string_view text);

}  // namespace drama3
