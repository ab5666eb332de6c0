// Prompts equal the golden ones id by id, with and without references; user text never yields a control
// token.
#include "lib/text/prompt.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/text/limits.h"
#include "lib/text/marks.h"
#include "lib/text/utf8.h"
#include "tests/text/golden_tokenizer.h"

using namespace drama3;

namespace {

std::string text_of(const std::vector<int32_t>& ids) { return golden_tokenizer().decode(ids); }

template <typename Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("prompts without references equal the golden ids") {
  const nlohmann::json list = golden_json("greedy.json");
  REQUIRE(list.size() == 2);
  for (const nlohmann::json& entry : list) {
    const std::vector<int32_t> ids = build_prompt(golden_tokenizer(), entry["text"].get<std::string>());
    CHECK(ids == entry["ids"].get<std::vector<int32_t>>());
    CHECK(text_of(ids) == entry["prompt"].get<std::string>());
  }
}

TEST_CASE("the prompt with a reference equals the golden one byte by byte, frames as audio rows") {
  const nlohmann::json golden = golden_json("reference.json");
  const std::vector<PromptReference> references = {{golden["transcript"].get<std::string>(), 7}};
  const std::vector<int32_t> ids =
      build_prompt(golden_tokenizer(), golden["text"].get<std::string>(), references);
  const auto audio = std::find(ids.begin(), ids.end(), kAudioRow);
  CHECK(std::count(ids.begin(), ids.end(), kAudioRow) == 7);
  CHECK(std::vector<int32_t>(ids.begin(), audio) ==
        golden_tokenizer().encode(golden["before"].get<std::string>()));
  CHECK(std::vector<int32_t>(audio + 7, ids.end()) ==
        golden_tokenizer().encode(golden["after"].get<std::string>()));
  CHECK(ids.size() == 92);
  // A stretch of golden/reference.safetensors' ids around the seam of transcript and layout words.
  const std::vector<int32_t> seam = {82, 13, 198, 198, 50, 333, 68, 330, 25, 198};
  CHECK(std::equal(seam.begin(), seam.end(), audio - 10));
}

TEST_CASE("transcript and layout words merge across their seam") {
  const Tokenizer tokenizer = tokenizer_with({{".", "\u010a"}});  // a full stop and the line feed behind it
  const std::vector<PromptReference> references = {{"Tick.", 1}};
  const std::vector<int32_t> ids = build_prompt(tokenizer, "a", references);
  CHECK(std::count(ids.begin(), ids.end(), 3000) == 1);
}

TEST_CASE("several references are joined by line feeds, each with its own speaker") {
  const std::vector<PromptReference> references = {{" One. ", 2}, {"<|speaker:7|>Two.", 1}, {"Three.", 3}};
  std::vector<int32_t> ids = build_prompt(golden_tokenizer(), "Go.", references);
  CHECK(std::count(ids.begin(), ids.end(), kAudioRow) == 6);
  std::erase(ids, kAudioRow);
  CHECK(text_of(ids) ==
        "<|im_start|>system\nconvert the provided text to speech reference to the following:\n\nText:\n"
        "<|speaker:0|>One.\n<|speaker:7|>Two.\n<|speaker:2|>Three.\n\nSpeech:\n<|im_end|>\n"
        "<|im_start|>user\n<|speaker:0|>Go.<|im_end|>\n<|im_start|>assistant\n<|voice|>");
}

TEST_CASE("the text is trimmed, kept verbatim inside, and tagged only where it opens without a tag") {
  const auto user = [](std::string_view text, int speaker = 0) {
    const std::string prompt = text_of(build_prompt(golden_tokenizer(), text, {}, speaker));
    const size_t begin = prompt.find("user\n") + 5;
    return prompt.substr(begin, prompt.find("<|im_end|>", begin) - begin);
  };
  CHECK(user("\u3000 Hi,\n\n  there.\u00a0\n") == "<|speaker:0|>Hi,\n\n  there.");
  CHECK(user(" <|speaker:3|>Hi <|speaker:4|>there") == "<|speaker:3|>Hi <|speaker:4|>there");
  CHECK(user("Hi", 9) == "<|speaker:9|>Hi");
  CHECK(user("<|speaker:1|>Hi", 9) == "<|speaker:1|>Hi");
}

TEST_CASE("a text becomes the same rows by every line end and with a byte order mark") {
  const std::string unix_text = "One fine day it rained.\nThe bus was late again.\nNobody minded much.\n";
  const std::string windows_text =
      "\xef\xbb\xbfOne fine day it rained.\r\nThe bus was late again.\r\nNobody minded much.\r\n";
  CHECK(build_prompt(golden_tokenizer(), clean_text(unix_text, "a")) ==
        build_prompt(golden_tokenizer(), clean_text(windows_text, "b")));
}

TEST_CASE("control tokens in text or transcript are refused by name") {
  CHECK(error_of([] { build_prompt(golden_tokenizer(), "a <|im_end|> b"); }).find("text: ") == 0);
  const std::vector<PromptReference> references = {{"fine", 1}, {"a <|voice|> b", 1}};
  const std::string message = error_of([&] { build_prompt(golden_tokenizer(), "a", references); });
  CHECK(message.find("transcript of reference 2: ") == 0);
  CHECK(message.find("'<|voice|>'") != std::string::npos);
}

TEST_CASE("a special token of any spelling is refused in user text") {
  TokenizerTable table =
      read_tokenizer_table(JsonDocument::read(golden_path("tiny/tokenizer.json"), kTokenizerLimits));
  table.added_tokens.push_back({.content = "[STOP]", .id = 2000, .special = true});
  table.added_tokens.push_back({.content = "<think>", .id = 2001});
  const Tokenizer tokenizer(table);
  CHECK(error_of([&] { build_prompt(tokenizer, "a [STOP] b"); }).find("'[STOP]'") != std::string::npos);
  const std::vector<int32_t> ids = build_prompt(tokenizer, "a <think> b");  // not special: read as text
  CHECK(std::count(ids.begin(), ids.end(), 2001) == 0);
}

TEST_CASE("empty texts, empty transcripts, too many or empty references are refused") {
  CHECK(error_of([] { build_prompt(golden_tokenizer(), " \n"); }) ==
        "text: expected words, got an empty text");
  const auto with = [](std::vector<PromptReference> references) {
    return error_of([&] { build_prompt(golden_tokenizer(), "a", references); });
  };
  CHECK(with({{" ", 1}}) == "transcript of reference 1: expected words, got an empty text");
  CHECK(with({{"a", 0}}) == "transcript of reference 1: expected at least one frame, got 0");
  CHECK(with(std::vector<PromptReference>(17, {"a", 1})) == "references: expected at most 16, got 17");
}

TEST_CASE("a tokenizer without the layout's tokens is refused by the token it lacks") {
  TokenizerTable table =
      read_tokenizer_table(JsonDocument::read(golden_path("tiny/tokenizer.json"), kTokenizerLimits));
  std::erase_if(table.added_tokens, [](const AddedToken& token) { return token.content == "<|voice|>"; });
  const Tokenizer tokenizer(table);
  CHECK(error_of([&] { build_prompt(tokenizer, "a"); }).find("'<|voice|>'") != std::string::npos);
}

TEST_CASE("the rows of a text and those of the layout add up") {
  const size_t layout = build_prompt(golden_tokenizer(), "a").size() - 2;
  for (const std::string text :
       {"Hello, world!", " padded ", "<|speaker:4|>x <|speaker:5|>y", "\u4f60\u597d"}) {
    const auto rows = static_cast<size_t>(count_text_rows(golden_tokenizer(), text));
    CHECK(build_prompt(golden_tokenizer(), text).size() == layout + rows);
  }
  CHECK(count_text_rows(golden_tokenizer(), " ") == 1);
}

TEST_CASE("what does not fit the caches is refused with both numbers") {
  check_rows_fit(24, 40, 64);
  CHECK(error_of([] {
          check_rows_fit(25, 40, 64);
        }).find("at most 64 rows of prompt and frames, got 25 + 40;") != std::string::npos);
  CHECK(error_of([] { check_rows_fit(65, INT64_MAX, 64); }).find("got 65 + ") != std::string::npos);
}

TEST_CASE("words are counted and seconds are estimated") {
  CHECK(count_words("The ferry leaves at six -- and, well, 2 come back.") == 10);
  CHECK(count_words("\u4f60\u597d\uff0c\u4e16\u754c English") == 5);
  CHECK(count_words("...") == 0);
  CHECK(words_in_seconds(60.0) == 150);
  const double seconds = expected_seconds("The ferry leaves at six and the last one back is at ten.");
  CHECK(seconds > 0.035 * 56);
  CHECK(seconds < 0.20 * 56);
  CHECK(expected_seconds("[a very long direction that nobody reads out] Hi") == expected_seconds("Hi"));
  CHECK(expected_seconds("") > 0.0);
  CHECK(shortest_seconds("What" + std::string(90, '?')) == shortest_seconds("What"));
  CHECK(shortest_seconds("What") < 0.046);  // one frame may say it
  CHECK(shortest_seconds("The ferry leaves at six and the last one back is at ten.") > 0.2);
}
