// Finding, checking and describing the marks of a text.
#include "lib/text/marks.h"

#include <algorithm>
#include <map>
#include <set>

#include "lib/base/check.h"
#include "lib/base/error.h"
#include "lib/text/utf8.h"

namespace drama3 {

namespace {

constexpr std::string_view kSpeakerPrefix = "<|speaker:";
constexpr std::string_view kWhisperOpen = "<whisper>";
constexpr std::string_view kWhisperClose = "</whisper>";
constexpr size_t kTokenNameBytes = 64;
constexpr size_t kQuotedBytes = 80;

// The end of the direction that opens at begin (a '['), or npos when it is none.
size_t direction_end(std::string_view text, size_t begin) {
  const size_t limit = std::min(text.size(), begin + kDirectionBytes);
  for (size_t i = begin + 1; i < limit; ++i) {
    if (text[i] == '\n' || text[i] == '[') return std::string_view::npos;
    if (text[i] == ']') return i == begin + 1 ? std::string_view::npos : i + 1;
  }
  return std::string_view::npos;
}

// The end of the "<|name|>" that opens at begin (where "<|" stands), or npos when it is none.
size_t token_end(std::string_view text, size_t begin) {
  for (size_t i = begin + 2; i < text.size() && i < begin + 2 + kTokenNameBytes; ++i) {
    if (text[i] == '|') {
      const bool closes = i > begin + 2 && i + 1 < text.size() && text[i + 1] == '>';
      return closes ? i + 2 : std::string_view::npos;
    }
    if (text[i] == '<' || text[i] == '>' || static_cast<unsigned char>(text[i]) <= ' ') break;
  }
  return std::string_view::npos;
}

// The text from begin to end, cut at a code point when it is too long to quote whole.
std::string quoted(std::string_view text, size_t begin, size_t end) {
  size_t stop = std::min({end, text.size(), begin + kQuotedBytes});
  while (stop < text.size() && (static_cast<unsigned char>(text[stop]) & 0xc0) == 0x80) --stop;
  return std::string(text.substr(begin, stop - begin));
}

}  // namespace

std::string speaker_tag(int speaker) {
  INVARIANT(speaker >= 0 && speaker < kSpeakers, "speaker ", speaker);
  return join(kSpeakerPrefix, speaker, "|>");
}

std::optional<int> leading_speaker(std::string_view text) {
  if (!text.starts_with(kSpeakerPrefix)) return std::nullopt;
  for (int speaker = 0; speaker < kSpeakers; ++speaker) {
    if (text.starts_with(speaker_tag(speaker))) return speaker;
  }
  return std::nullopt;
}

std::vector<Mark> find_marks(std::string_view text) {
  std::vector<Mark> marks;
  size_t whisper_end = 0;  // a whisper does not nest; npos once no closing tag follows
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') {
      const size_t end = direction_end(text, i);
      if (end != std::string_view::npos) marks.push_back({MarkKind::kDirection, i, end, 0});
    } else if (text[i] == '<') {
      const std::string_view rest = text.substr(i);
      if (const std::optional<int> speaker = leading_speaker(rest)) {
        marks.push_back({MarkKind::kSpeaker, i, i + speaker_tag(*speaker).size(), *speaker});
      } else if (whisper_end <= i && rest.starts_with(kWhisperOpen)) {
        const size_t close = text.find(kWhisperClose, i);
        whisper_end = close == std::string_view::npos ? close : close + kWhisperClose.size();
        if (close != std::string_view::npos) marks.push_back({MarkKind::kWhisper, i, whisper_end, 0});
      }
    }
  }
  return marks;
}

void refuse_control_tokens(std::string_view text, std::string_view what) {
  for (size_t i = text.find("<|"); i != std::string_view::npos; i = text.find("<|", i + 2)) {
    const std::string_view rest = text.substr(i);
    if (leading_speaker(rest)) continue;
    const size_t end = token_end(text, i);
    if (rest.starts_with(kSpeakerPrefix)) {
      const size_t shown = end == std::string_view::npos ? i + kSpeakerPrefix.size() : end;
      fail(what, ": expected speaker tags <|speaker:0|> to <|speaker:15|>, got '", quoted(text, i, shown),
           "' at byte offset ", i, "; use one of these or remove it");
    }
    if (end == std::string_view::npos && !rest.starts_with("<|semantic:")) continue;
    const size_t shown = end == std::string_view::npos ? i + std::string_view("<|semantic:").size() : end;
    fail(what, ": expected no control token but speaker tags, got '", quoted(text, i, shown),
         "' at byte offset ", i, "; remove it");
  }
}

bool has_speech(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '<') {
      if (const std::optional<int> speaker = leading_speaker(text.substr(i))) {
        i += speaker_tag(*speaker).size();
        continue;
      }
    }
    const CodePoint point = code_point_at(text, i);
    if (is_speakable(point.value)) return true;
    i += point.bytes;
  }
  return false;
}

void check_speech_text(std::string_view text, std::string_view what) {
  refuse_control_tokens(text, what);
  if (!has_speech(text)) {
    const bool blank = trim(text).empty();
    fail(what, ": nothing to speak: expected words, got ",
         blank ? "an empty text" : "only punctuation, marks or blanks",
         "; give at least one letter or digit");
  }
}

std::string describe_marks(std::string_view text) {
  std::set<int> speakers;
  std::map<std::string, int> directions;
  int whispers = 0;
  for (const Mark& mark : find_marks(text)) {
    if (mark.kind == MarkKind::kSpeaker) speakers.insert(mark.speaker);
    if (mark.kind == MarkKind::kDirection)
      ++directions[std::string(text.substr(mark.begin, mark.end - mark.begin))];
    if (mark.kind == MarkKind::kWhisper) ++whispers;
  }
  std::string out;
  for (int speaker : speakers) out += join(out.empty() ? "speakers " : ", ", speaker);
  bool first = true;
  for (const auto& [direction, count] : directions) {
    out += first ? (out.empty() ? "directions " : "; directions ") : ", ";
    out += count > 1 ? join(direction, " x", count) : direction;
    first = false;
  }
  if (whispers > 0) out += join(out.empty() ? "" : "; ", "whisper x", whispers);
  return out;
}

std::optional<std::string> markup_remark(std::string_view text) {
  static constexpr std::string_view kElements[] = {"speak",   "break",    "prosody", "say-as",
                                                   "phoneme", "emphasis", "voice",   "sub"};
  for (size_t i = text.find('<'); i != std::string_view::npos; i = text.find('<', i + 1)) {
    std::string_view rest = text.substr(i + 1);
    for (std::string_view element : kElements) {
      if (!rest.starts_with(element) || rest.size() == element.size()) continue;
      const char next = rest[element.size()];
      if (next == '>' || next == '/' || next == ' ' || next == '\n' || next == '\t') {
        return join("the text holds '<", element,
                    "', which looks like SSML; SSML is not understood and is read out as it stands "
                    "(directions are written [pause], [sighs], <whisper>..</whisper>)");
      }
    }
  }
  return std::nullopt;
}

}  // namespace drama3
