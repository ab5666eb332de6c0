// generation_config.json: members, defaults, and refusals that name the member.
#include <doctest/doctest.h>

#include <string>

#include "lib/base/error.h"
#include "lib/engine/model_config.h"

using namespace drama3;

namespace {

GenerationConfig parse(const std::string& text) {
  return parse_generation_config(JsonDocument::parse("generation_config.json", text, kConfigLimits));
}

}  // namespace

TEST_CASE("absent members keep the defaults, present ones are taken") {
  const GenerationConfig defaults = parse("{}");
  CHECK(defaults.sampling.temperature == 1.0f);
  CHECK(defaults.sampling.top_p == 0.9f);
  CHECK(defaults.sampling.top_k == 0);
  CHECK(defaults.piece_frames == 2048);
  const GenerationConfig config = parse(
      R"({"temperature": 0.5, "top_p": 1, "top_k": 7, "max_frames": 320, "piece_rows": 64, "bos": null})");
  CHECK(config.sampling.temperature == 0.5f);
  CHECK(config.sampling.top_p == 1.0f);
  CHECK(config.sampling.top_k == 7);
  CHECK(config.piece_frames == 320);
  CHECK(config.piece_rows == 64);
}

TEST_CASE("members out of range are refused by name") {
  for (const std::string text :
       {R"({"temperature": -0.1})", R"({"top_p": 0})", R"({"top_p": 1.01})", R"({"top_k": -1})",
        R"({"top_k": 2.5})", R"({"max_frames": 0})", R"({"piece_rows": 3})"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse(text), Error);
  }
}
