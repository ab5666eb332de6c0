// Assembly of the prompt from special tokens, fixed words, spoken text and audio rows.
#include "lib/text/prompt.h"

#include <optional>

#include "lib/base/check.h"
#include "lib/base/error.h"
#include "lib/text/marks.h"
#include "lib/text/utf8.h"

namespace drama3 {

namespace {

constexpr std::string_view kMessageStart = "<|im_start|>";
constexpr std::string_view kMessageEnd = "<|im_end|>";
constexpr std::string_view kVoice = "<|voice|>";
constexpr std::string_view kInstruction = "system\nconvert the provided text to speech";
constexpr std::string_view kReferenceInstruction = " reference to the following:\n\nText:\n";
constexpr std::string_view kReferenceAudio = "\n\nSpeech:\n";

// Collects rows. Plain words wait until a token or audio ends them, because the tokenizer may merge across
// the seams of the layout ("ticks." and "\n\nSpeech:").
class PromptWriter {
 public:
  explicit PromptWriter(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void token(std::string_view content) {
    flush();
    const std::optional<int32_t> id = tokenizer_.added_token_id(content);
    if (!id) fail("tokenizer: expected the added token '", content, "' of the prompt layout, got none");
    ids_.push_back(*id);
  }

  void plain(std::string_view words) { waiting_ += words; }

  // Words of the user: speaker tags become tokens, everything else is plain.
  void spoken(std::string_view text, std::string_view what) {
    size_t taken = 0;
    for (const Mark& mark : find_marks(text)) {
      if (mark.kind != MarkKind::kSpeaker) continue;
      user_words(text.substr(taken, mark.begin - taken), what);
      token(speaker_tag(mark.speaker));
      taken = mark.end;
    }
    user_words(text.substr(taken), what);
  }

  void audio(int64_t frames) {
    flush();
    ids_.insert(ids_.end(), static_cast<size_t>(frames), kAudioRow);
  }

  std::vector<int32_t> finish() {
    flush();
    return std::move(ids_);
  }

 private:
  void user_words(std::string_view words, std::string_view what) {
    if (const std::optional<std::string> special = tokenizer_.find_special_token(words)) {
      fail(what, ": expected no control token but speaker tags, got '", *special, "'; remove it");
    }
    plain(words);
  }

  void flush() {
    if (waiting_.empty()) return;
    const std::vector<int32_t> ids = tokenizer_.encode_plain(waiting_);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    waiting_.clear();
  }

  const Tokenizer& tokenizer_;
  std::string waiting_;
  std::vector<int32_t> ids_;
};

// The trimmed text with a speaker tag in front.
std::string tagged(std::string_view text, int speaker) {
  const std::string_view trimmed = trim(text);
  return leading_speaker(trimmed) ? std::string(trimmed) : speaker_tag(speaker) + std::string(trimmed);
}

std::string checked_tagged(std::string_view text, int speaker, std::string_view what) {
  refuse_control_tokens(text, what);
  if (trim(text).empty()) fail(what, ": expected words, got an empty text");
  return tagged(text, speaker);
}

void write_references(PromptWriter& writer, std::span<const PromptReference> references) {
  if (references.size() > static_cast<size_t>(kSpeakers)) {
    fail("references: expected at most ", kSpeakers, ", got ", references.size());
  }
  writer.plain(kReferenceInstruction);
  int64_t frames = 0;
  for (size_t i = 0; i < references.size(); ++i) {
    const std::string what = join("transcript of reference ", i + 1);
    if (references[i].frames <= 0) fail(what, ": expected at least one frame, got ", references[i].frames);
    if (i > 0) writer.plain("\n");
    writer.spoken(checked_tagged(references[i].transcript, static_cast<int>(i), what), what);
    frames += references[i].frames;
  }
  writer.plain(kReferenceAudio);
  writer.audio(frames);
}

}  // namespace

std::vector<int32_t> build_prompt(const Tokenizer& tokenizer, std::string_view text,
                                  std::span<const PromptReference> references, int speaker) {
  PromptWriter writer(tokenizer);
  writer.token(kMessageStart);
  writer.plain(kInstruction);
  if (!references.empty()) write_references(writer, references);
  writer.token(kMessageEnd);
  writer.plain("\n");
  writer.token(kMessageStart);
  writer.plain("user\n");
  writer.spoken(checked_tagged(text, speaker, "text"), "text");
  writer.token(kMessageEnd);
  writer.plain("\n");
  writer.token(kMessageStart);
  writer.plain("assistant\n");
  writer.token(kVoice);
  return writer.finish();
}

int64_t count_text_rows(const Tokenizer& tokenizer, std::string_view text, int speaker) {
  PromptWriter writer(tokenizer);
  writer.spoken(tagged(text, speaker), "text");
  return static_cast<int64_t>(writer.finish().size());
}

}  // namespace drama3
