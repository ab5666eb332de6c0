// Splitting loses nothing, keeps every budget and cuts where a reader would.
#include "lib/text/split.h"

#include <doctest/doctest.h>

#include <random>

#include "lib/base/error.h"
#include "lib/text/boundaries.h"
#include "lib/text/marks.h"
#include "lib/text/prompt.h"
#include "lib/text/utf8.h"
#include "tests/text/golden_tokenizer.h"
#include "tests/text/processor_time.h"

using namespace drama3;

namespace {

// The pieces, after checking what holds for every split. They view the text, so that a temporary is refused.
std::vector<TextPiece> checked_split(std::string&&, int64_t) = delete;
std::vector<TextPiece> checked_split(const std::string& text, int64_t budget,
                                     const Tokenizer& tokenizer = golden_tokenizer()) {
  const std::vector<TextPiece> pieces = split_text(tokenizer, text, budget);
  std::string joined;
  int speaker = 0;  // in force, followed by reading all text before the piece
  for (const TextPiece& piece : pieces) {
    CHECK(!piece.text.empty());
    CHECK(find_invalid_utf8(piece.text) == std::string_view::npos);
    CHECK(piece.rows <= budget);
    CHECK(piece.rows == count_text_rows(tokenizer, piece.text, piece.speaker));
    CHECK(piece.speaker == speaker);
    CHECK(piece.has_speech == has_speech(piece.text));
    for (const Mark& mark : find_marks(piece.text)) {
      if (mark.kind == MarkKind::kSpeaker) speaker = mark.speaker;
    }
    joined += piece.text;
  }
  CHECK(joined == text);
  return pieces;
}

std::vector<std::string> texts_of(const std::vector<TextPiece>& pieces) {
  std::vector<std::string> texts;
  for (const TextPiece& piece : pieces) texts.emplace_back(piece.text);
  return texts;
}

// The text cut at every boundary of at least this kind.
std::vector<std::string> cut_at(const std::string& text, Cut least) {
  std::vector<std::string> parts;
  size_t taken = 0;
  for (const Boundary& boundary : find_boundaries(text)) {
    if (boundary.cut < least) continue;
    parts.push_back(text.substr(taken, boundary.offset - taken));
    taken = boundary.offset;
  }
  parts.push_back(text.substr(taken));
  return parts;
}

using Parts = std::vector<std::string>;

std::string night_watch() {  // case S10's text
  std::string text;
  for (int i = 1; i <= 60; ++i) {
    text += (i > 1 ? " " : "") + std::string("Entry ") + std::to_string(i) + ": the lamp in room " +
            std::to_string(2 * i + 5) + " was left on, so the night guard wrote it down.";
  }
  return text;
}

std::string random_script(std::mt19937& random, int parts) {
  static const std::vector<std::string> kParts = {"word",
                                                  " ",
                                                  " ",
                                                  "another",
                                                  ". ",
                                                  "! ",
                                                  ", ",
                                                  "\n",
                                                  "\n\n",
                                                  "<|speaker:3|>",
                                                  "<|speaker:12|>",
                                                  "[sighs]",
                                                  "[a long direction, with. stops]",
                                                  "<whisper>",
                                                  "</whisper>",
                                                  "Mr. ",
                                                  "3.14",
                                                  "e.g. ",
                                                  "\u3002",
                                                  "\uff0c",
                                                  "\u4f60\u597d\u4e16\u754c",
                                                  "\u3053\u3093",
                                                  "e\u0301",
                                                  "\U0001f469\u200d\U0001f469\u200d\U0001f467",
                                                  "\U0001f1fa\U0001f1f8",
                                                  "\u00a0",
                                                  "\u2014",
                                                  "\"",
                                                  ")",
                                                  "(",
                                                  "[",
                                                  "<",
                                                  "...",
                                                  "\u2026",
                                                  "xxxxxxxxxxxxxxxxxxxxxx",
                                                  "\u0301\u0323\u0327\u0301",
                                                  "\U0001d160",
                                                  "   ",
                                                  "- ",
                                                  "1. ",
                                                  "\u200b",
                                                  "    \n   "};
  std::string text;
  for (int i = 0; i < parts; ++i) text += kParts[random() % kParts.size()];
  return text;
}

}  // namespace

TEST_CASE("a text that fits stays one piece") {
  const std::string text = "One. Two. Three.";
  CHECK(texts_of(checked_split(text, 200)) == Parts{text});
}

TEST_CASE("a long text is cut between sentences and joins to itself") {
  const std::string text = night_watch();
  for (int64_t budget : {64, 100, 200, 333, 1000}) {
    const std::vector<TextPiece> pieces = checked_split(text, budget);
    CHECK(pieces.size() > 1);
    for (const TextPiece& piece : pieces) {
      CHECK(piece.text.ends_with("down."));
      CHECK(trim(piece.text).starts_with("Entry "));
    }
  }
}

TEST_CASE("each piece takes all the sentences that fit") {
  const std::string text = night_watch();
  const std::vector<TextPiece> pieces = checked_split(text, 200);
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    const std::string_view next = pieces[i + 1].text;
    const std::string more = std::string(pieces[i].text) + std::string(next.substr(0, next.find('.') + 1));
    CHECK(count_text_rows(golden_tokenizer(), more) > 200);
  }
}

TEST_CASE("sentences end at stops, not at abbreviations, numbers or initials") {
  CHECK(cut_at("Mr. Smith paid 3.14 dollars, e.g. for J. R. Tolkien. He left. Dr. No!", Cut::kSentence) ==
        Parts{"Mr. Smith paid 3.14 dollars, e.g. for J. R. Tolkien.", " He left.", " Dr. No!"});
  CHECK(cut_at("\"Stop!\" he said. \"Why?\" She ran.", Cut::kSentence) ==
        Parts{"\"Stop!\" he said.", " \"Why?\"", " She ran."});
  CHECK(cut_at("It was in 1990. The end... or not. He said no. So do I. Done.", Cut::kSentence) ==
        Parts{"It was in 1990.", " The end... or not.", " He said no.", " So do I.", " Done."});
  CHECK(cut_at("1. First\n2. Second, see no. 5 and vol. 2 at 5 p.m. Then the U.S. Navy (Inc.) came. Bye",
               Cut::kSentence) == Parts{"1. First\n2. Second, see no. 5 and vol. 2 at 5 p.m.",
                                        " Then the U.S. Navy (Inc.) came.", " Bye"});
  CHECK(cut_at("See example.org. It works; v1.2.3 too.", Cut::kSentence) ==
        Parts{"See example.org.", " It works; v1.2.3 too."});
}

TEST_CASE("a single line feed is a space, a blank line ends a sentence") {
  CHECK(cut_at("A heading\n\nsome text\nthat goes on", Cut::kSentence) ==
        Parts{"A heading", "\n\nsome text\nthat goes on"});
  CHECK(cut_at("A heading\n \t\nText", Cut::kSentence) == Parts{"A heading", "\n \t\nText"});
}

TEST_CASE("sentences and clauses end without blanks in scripts that use none") {
  CHECK(cut_at("\u4f60\u597d\u3002\u4e16\u754c\uff01\u300d\u4eca\u5929\uff0c\u597d", Cut::kSentence) ==
        Parts{"\u4f60\u597d\u3002", "\u4e16\u754c\uff01\u300d", "\u4eca\u5929\uff0c\u597d"});
  CHECK(cut_at("\u4eca\u5929\uff0c\u597d\u3001\u597d", Cut::kClause) ==
        Parts{"\u4eca\u5929\uff0c", "\u597d\u3001", "\u597d"});
  CHECK(
      cut_at("\u0928\u092e\u0938\u094d\u0924\u0947\u0964 \u092e\u0948\u0902\u0964", Cut::kSentence).size() ==
      2);
}

TEST_CASE("clauses end at commas, colons and dashes, not inside numbers and times") {
  CHECK(cut_at("at 10:30, 12,345 of them; yes: all - or none\u2014maybe", Cut::kClause) ==
        Parts{"at 10:30,", " 12,345 of them;", " yes:", " all -", " or none\u2014", "maybe"});
}

TEST_CASE("a new speaker begins a sentence and a tag is never cut") {
  const std::string text = "well <|speaker:3|>yes<|speaker:4|>no";
  CHECK(cut_at(text, Cut::kSentence) == Parts{"well", " <|speaker:3|>yes", "<|speaker:4|>no"});
  for (const std::string& part : cut_at(text, Cut::kCodePoint)) {
    CHECK((part.find('|') == std::string::npos || find_marks(part).size() == 1));
  }
}

TEST_CASE("directions and whispers are cut only where nothing else is in reach") {
  CHECK(cut_at("Oh [sighs, long. Very] my <whisper>so. Quiet, now</whisper> end", Cut::kCluster).size() > 5);
  for (const std::string& part :
       cut_at("Oh [sighs, long. Very] my <whisper>so. Quiet, now</whisper> end", Cut::kCluster)) {
    CHECK((part.find('[') == std::string::npos) == (part.find(']') == std::string::npos));
    CHECK((part.find("<whisper>") == std::string::npos) == (part.find("</whisper>") == std::string::npos));
  }
  std::string text = "Say ";
  while (count_text_rows(golden_tokenizer(), text) < 50) text += "more and ";
  text += "<whisper>some soft words. And more</whisper> ok";
  const std::vector<TextPiece> pieces = checked_split(text, 64);
  REQUIRE(pieces.size() == 2);
  CHECK(trim(pieces[1].text).starts_with("<whisper>"));
}

TEST_CASE("the speaker in force goes on into the next piece without changing the text") {
  std::string text = "<|speaker:3|>";
  for (int i = 0; i < 30; ++i) text += "This is the third speaker. ";
  text += "<|speaker:5|>";
  for (int i = 0; i < 30; ++i) text += "And this is the fifth. ";
  const std::vector<TextPiece> pieces = checked_split(text, 80);
  CHECK(pieces[0].speaker == 0);  // its own tag stands in front
  CHECK(pieces[1].speaker == 3);
  CHECK(pieces.back().speaker == 5);
}

TEST_CASE("words, clusters and code points are the last resorts") {
  const std::string words(4000, 'x');
  CHECK(checked_split(words, 64).size() > 60);
  std::string family = "a";
  for (int i = 0; i < 40; ++i) family += "\U0001f469\u200d\U0001f469\u200d\U0001f467";
  for (const TextPiece& piece : checked_split(family, 64)) {  // 18 bytes each: several fit
    CHECK(piece.text.size() % 18 == (piece.text.starts_with("a") ? 1 : 0));
  }
  std::string pile = "e";
  for (int i = 0; i < 500; ++i) pile += "\u0323";  // one grapheme cluster of 1,001 bytes
  CHECK(checked_split(pile, 64).size() > 10);
}

TEST_CASE("blanks and stops without words join their neighbours") {
  const std::string text =
      std::string(5000, ' ') + "word" + std::string(5000, ' ') + "other" + std::string(5000, '\n');
  CHECK(checked_split(text, 40).size() == 2);
  const std::string stops = "Hm " + std::string(400, '.') + " yes";
  const std::vector<TextPiece> dots = checked_split(stops, 40);
  CHECK(dots.front().has_speech);
  CHECK(!dots[1].has_speech);
}

TEST_CASE("random scripts of all parts join to themselves within every budget") {
  std::mt19937 random(3);
  for (int round = 0; round < 400; ++round) {
    const std::string text = random_script(random, 200);
    checked_split(text, 32 + static_cast<int64_t>(random() % 100));
  }
}

TEST_CASE("a long text of anything splits in time that grows with its length") {
  for (const std::string part :
       {"The lamp was on. ", "x", " ", ".", "\"", "\u4f60", "[", "<whisper>", "<|speaker:1|>", "\u0301"}) {
    std::string text = "a";
    while (text.size() < kLongTextBytes / 4) text += part;
    CAPTURE(part);
    CHECK(processor_seconds([&] { CHECK(!split_text(golden_tokenizer(), text, 200).empty()); }) < 2.0);
  }
}

TEST_CASE("budgets hold where parts count less alone than together") {
  // Alone the stop and the ideograph are one token each; together their middle bytes merge first: four.
  const Tokenizer tokenizer = tokenizer_with({{"\u0124", "\u00e5"},
                                              {"\u00e3", "\u0122"},
                                              {"\u00e3\u0122", "\u0124"},
                                              {"\u00e5", "\u00a5"},
                                              {"\u00e5\u00a5", "\u00bd"}});
  REQUIRE(tokenizer.encode_plain("\u3002\u597d").size() == 4);
  REQUIRE(tokenizer.encode_plain("\u3002").size() + tokenizer.encode_plain("\u597d").size() == 2);
  std::string text;
  for (int i = 0; i < 200; ++i) text += "\u597d\u3002";
  CHECK(checked_split(text, 40, tokenizer).size() > 15);
}

TEST_CASE("budgets hold where a word counts more without the blank before it") {
  std::vector<std::pair<std::string, std::string>> merges;
  std::string token = "\u0120";  // the blank
  for (int i = 0; i < 60; ++i, token += "Q") merges.emplace_back(token, "Q");
  const Tokenizer tokenizer = tokenizer_with(merges);
  const std::string word = " " + std::string(60, 'Q');
  REQUIRE(tokenizer.encode_plain(word).size() == 1);
  std::string text = "a";
  for (int i = 0; i < 100; ++i) text += word;
  checked_split(text, 40, tokenizer);
}

TEST_CASE("a budget that holds no code point is refused") {
  CHECK_THROWS_AS(split_text(golden_tokenizer(), "a", 31), Error);
}
