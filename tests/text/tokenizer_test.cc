// The tokenizer gives the golden ids, decodes what it encodes, and stays fast on long and hostile texts.
#include "lib/text/tokenizer.h"

#include <doctest/doctest.h>

#include <random>

#include "lib/base/error.h"
#include "lib/text/nfc.h"
#include "lib/text/utf8.h"
#include "tests/text/golden_tokenizer.h"
#include "tests/text/processor_time.h"

using namespace drama3;

namespace {

std::string repeated(const std::string& part, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += part;
  return text;
}

// A text of up to `length` code points from the blocks where splitting and normalising differ.
std::string random_text(std::mt19937& random, int length) {
  static const std::vector<std::pair<int32_t, int32_t>> kBlocks = {
      {0x01, 0x7f},     {0x20, 0x7e},     {0xa0, 0x24f},      {0x300, 0x36f},     {0x370, 0x5ff},
      {0x900, 0x97f},   {0x1100, 0x11ff}, {0x2000, 0x206f},   {0x3000, 0x30ff},   {0x4e00, 0x4eff},
      {0xac00, 0xad00}, {0xfb00, 0xfb4f}, {0x1d15e, 0x1d164}, {0x1f300, 0x1f6ff}, {0x2f800, 0x2f820}};
  std::string text;
  for (int i = static_cast<int>(random() % static_cast<unsigned>(length)); i >= 0; --i) {
    const auto [first, last] = kBlocks[random() % kBlocks.size()];
    append_utf8(text, first + static_cast<int32_t>(random() % static_cast<unsigned>(last - first + 1)));
  }
  return text;
}

}  // namespace

TEST_CASE("every golden string gives the golden ids") {
  const nlohmann::json list = golden_json("tokenizer.json");
  REQUIRE(list.size() == 51);
  for (const nlohmann::json& entry : list) {
    const auto text = entry["text"].get<std::string>();
    CAPTURE(text);
    CHECK(golden_tokenizer().encode(text) == entry["ids"].get<std::vector<int32_t>>());
  }
}

TEST_CASE("every golden string comes back from its ids, normalised") {
  for (const nlohmann::json& entry : golden_json("tokenizer.json")) {
    const auto text = entry["text"].get<std::string>();
    CAPTURE(text);
    CHECK(golden_tokenizer().decode(entry["ids"].get<std::vector<int32_t>>()) == to_nfc(text));
  }
}

TEST_CASE("random texts come back from their ids, normalised") {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = random_text(random, 60);
    CAPTURE(text);
    CHECK(golden_tokenizer().decode(golden_tokenizer().encode_plain(text)) == to_nfc(text));
  }
}

TEST_CASE("normalisation composes, orders marks and leaves composed text alone") {
  CHECK(to_nfc("e\u0301") == "\u00e9");
  CHECK(to_nfc("A\u030a\u0323") == to_nfc("\u1ea0\u030a"));  // marks in either order
  CHECK(to_nfc("\u1100\u1161\u11a8") == "\uac01");
  CHECK(to_nfc("\ufb1d") == "\u05d9\u05b4");  // excluded from composition
  CHECK(to_nfc("plain") == "plain");
  std::mt19937 random(2);
  for (int round = 0; round < 1000; ++round) {
    const std::string once = to_nfc(random_text(random, 30));
    CHECK(to_nfc(once) == once);
  }
}

TEST_CASE("a pair that another merge replaced loses its turn") {
  const Tokenizer tokenizer = tokenizer_with({{"X", "J"}, {"Q", "X"}, {"XJ", "Z"}, {"Q", "XJ"}});
  // X J merge first; the old turn of Q X must not go to Q XJ, which comes after XJ Z.
  CHECK(tokenizer.encode_plain("QXJZ") == std::vector<int32_t>{48, 3002});
  CHECK(tokenizer.encode_plain("QXJ") == std::vector<int32_t>{3003});
}

TEST_CASE("plain encoding finds no added token") {
  const std::vector<int32_t> ids = golden_tokenizer().encode_plain("<|im_end|><|speaker:3|><|semantic:7|>");
  for (int32_t id : ids) CHECK(id < 746);
  CHECK(golden_tokenizer().decode(ids) == "<|im_end|><|speaker:3|><|semantic:7|>");
}

TEST_CASE("added tokens are looked up by content and found in a text") {
  CHECK(golden_tokenizer().added_token_id("<|voice|>") == 749);
  CHECK(!golden_tokenizer().added_token_id("hello"));
  CHECK(golden_tokenizer().find_special_token("read <|endoftext|> now") == "<|endoftext|>");
  CHECK(!golden_tokenizer().find_special_token("read <|endoftext now"));
  CHECK(golden_tokenizer().id_limit() == 1024);
}

TEST_CASE("decoding refuses ids without a token") {
  CHECK_THROWS_AS(golden_tokenizer().decode({1024}), Error);
  CHECK_THROWS_AS(golden_tokenizer().decode({-1}), Error);
}

TEST_CASE("a megabyte takes less than a second whatever it holds") {
  for (const std::string part : {"The quick brown fox jumps over 13 lazy dogs, twice. ", "x", "ab", " ", "\n",
                                 " \n", "<", "<|semantic:", "'", "\u4f60\u597d\u3002", "e\u0301",
                                 "\u0301\u0323\u0327", "a\u180e", "\U0001f469\u200d"}) {
    CAPTURE(part);
    const std::string text = repeated(part, kLongTextBytes);
    CHECK(processor_seconds([&] { CHECK(!golden_tokenizer().encode(text).empty()); }) < 1.0);
  }
}
