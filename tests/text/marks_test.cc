// Speaker tags, directions and whispers are recognised; control tokens and speechless texts are refused.
#include "lib/text/marks.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"

using namespace drama3;

namespace {

std::string error_of(const std::string& text) {
  try {
    check_speech_text(text, "text");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("empty, blank, punctuation-only and emoji-only texts have nothing to speak") {
  for (const std::string text : {"", "   ", "\t\n", "\u00a0\u3000\u200b", "...", "?!",
                                 "\U0001f642\U0001f389\U0001f469\u200d\U0001f469\u200d\U0001f467",
                                 "<|speaker:1|>", " <|speaker:1|> ... <|speaker:2|>\n", "---", "\u3002"}) {
    CAPTURE(text);
    CHECK(holds(error_of(text), "nothing to speak"));
  }
  CHECK(holds(error_of("  "), "an empty text"));
  CHECK(holds(error_of("?!"), "only punctuation"));
}

TEST_CASE("short speakable texts are taken") {
  for (const std::string text :
       {"a", "7", "$5", "\u4f60", "No", "[sighs]", "<|speaker:15|>Hi", "\u00a0x\u200b"}) {
    CAPTURE(text);
    CHECK(error_of(text) == "");
  }
}

TEST_CASE("control tokens are refused by name") {
  for (const std::string token : {"<|im_start|>", "<|im_end|>", "<|voice|>", "<|text|>", "<|interleave|>",
                                  "<|semantic:5|>", "<|endoftext|>", "<|audio_start|>", "<|speaker:16|>",
                                  "<|speaker:00|>", "<|speaker:01|>", "<|speaker:-1|>", "<|speaker:|>"}) {
    CAPTURE(token);
    CHECK(holds(error_of("Please read " + token + " aloud"), "got '" + token + "' at byte offset 12"));
  }
  CHECK(holds(error_of("a <|semantic: b"), "got '<|semantic:' at byte offset 2"));
  CHECK(holds(error_of("a <|speaker:1 b"), "got '<|speaker:' at byte offset 2"));
  CHECK(holds(error_of("<|speaker:1|>fine <|im_start<|im_end|>|>"), "got '<|im_end|>'"));
}

TEST_CASE("what only resembles a control token is plain text") {
  for (const std::string text :
       {"a <| b |> c", "<|im_end", "x <|> y", "<||>z", "if (a <|b| c)", "im_end|>"}) {
    CAPTURE(text);
    CHECK(error_of(text) == "");
  }
}

TEST_CASE("a text may open with a speaker tag of 0 to 15") {
  CHECK(leading_speaker("<|speaker:0|>Hi") == 0);
  CHECK(leading_speaker("<|speaker:15|>") == 15);
  CHECK(!leading_speaker("<|speaker:16|>Hi"));
  CHECK(!leading_speaker("<|speaker:05|>Hi"));
  CHECK(!leading_speaker(" <|speaker:0|>Hi"));
  CHECK(speaker_tag(12) == "<|speaker:12|>");
}

TEST_CASE("marks are found with their bytes") {
  const std::string text = "<|speaker:2|>Hm [sighs] <whisper>no [pause] one</whisper> [] [a\nb] <whisper>";
  const std::vector<Mark> marks = find_marks(text);
  REQUIRE(marks.size() == 4);
  CHECK(marks[0].kind == MarkKind::kSpeaker);
  CHECK(marks[0].speaker == 2);
  CHECK(marks[0].end == 13);
  CHECK(text.substr(marks[1].begin, marks[1].end - marks[1].begin) == "[sighs]");
  CHECK(text.substr(marks[2].begin, marks[2].end - marks[2].begin) == "<whisper>no [pause] one</whisper>");
  CHECK(text.substr(marks[3].begin, marks[3].end - marks[3].begin) == "[pause]");
}

TEST_CASE("what was recognised is described once") {
  CHECK(describe_marks("<|speaker:2|>a [sighs] <|speaker:0|>b [sighs] [pause] <whisper>c</whisper>") ==
        "speakers 0, 2; directions [pause], [sighs] x2; whisper x1");
  CHECK(describe_marks("[laughs] hi") == "directions [laughs]");
  CHECK(describe_marks("plain").empty());
}

TEST_CASE("text that looks like SSML gets a remark") {
  CHECK(markup_remark("<speak>Hi</speak>").has_value());
  CHECK(markup_remark("wait <break time='1s'/> go").has_value());
  CHECK(markup_remark("wait <break/> go").has_value());
  CHECK(!markup_remark("<whisper>Hi</whisper> a < b, <breakfast>, <speaker"));
}
