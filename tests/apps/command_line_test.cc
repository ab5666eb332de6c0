// The rules of the command line, each with an argument list that breaks only that rule.
#include "apps/command_line.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "apps/say_options.h"

namespace drama3 {
namespace {

CommandLine read(std::vector<const char*> arguments) { return CommandLine(Tool::kSay, arguments); }

// The message of the refusal, or "accepted".
std::string refusal(const std::vector<const char*>& arguments) {
  try {
    read_say_options(read(arguments), true);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a value follows its option after a blank or an equals sign, a letter takes a blank only") {
  CHECK(read({"--seed", "7", "-o", "a.wav", "hi"}).value("seed") == "7");
  CHECK(read({"--seed=7"}).value("seed") == "7");
  CHECK(read({"-n", "5"}).value("max-frames") == "5");
  CHECK(read({"--model="}).value("model").empty());
  CHECK(read({"--model=a=b"}).value("model") == "a=b");
  CHECK(contains(refusal({"-o=x.wav", "hi"}), "'-o=x.wav': expected -o VALUE"));
  CHECK(contains(refusal({"-ox.wav", "hi"}), "put -- before"));
  CHECK(contains(refusal({"hi", "--quiet=1", "-o", "x.wav"}), "--quiet: expected no value"));
}

TEST_CASE("names are exact: no abbreviation, no bundling") {
  for (const char* wrong : {"--mod", "--see=1", "-qv", "-hello", "-h1", "--Help", "---help", "-1"}) {
    CHECK(contains(refusal({wrong, "-o", "x.wav"}), "put -- before a text that begins with a dash"));
  }
  CHECK(contains(refusal({"-hello"}), "'-hello'"));
}

TEST_CASE("two dashes end the options, one alone is a text") {
  const CommandLine command = read({"-o", "x.wav", "--", "-hello"});
  CHECK(command.positionals() == std::vector<std::string>{"-hello"});
  CHECK(read({"--", "--", "-o"}).positionals() == std::vector<std::string>{"--", "-o"});
  CHECK(read({"-"}).positionals() == std::vector<std::string>{"-"});
  CHECK(read({""}).positionals() == std::vector<std::string>{""});
}

TEST_CASE("texts reach the tool byte by byte") {
  for (const char* text : {"[sighs]", "[a, b]", "{x}", "a=b", "%TEXT%", "\"quoted\"", "  ", "\xff", "a\nb"}) {
    CHECK(read({text}).positionals() == std::vector<std::string>{text});
    CHECK(read({"--model", text}).value("model") == text);
  }
}

TEST_CASE("an option with a value is given once, a flag may be repeated") {
  CHECK(contains(refusal({"--seed", "1", "--seed=2", "hi", "-o", "x.wav"}), "--seed: expected once"));
  CHECK(contains(refusal({"--temp", "1", "--temperature=2", "hi", "-o", "x.wav"}), "--temperature"));
  CHECK(contains(refusal({"--json", "--json", "hi", "-o", "x.wav"}), "--json: expected once"));
  CHECK(refusal({"-q", "--quiet", "hi", "-o", "x.wav"}) == "accepted");
}

TEST_CASE("a missing value is named, an option is never swallowed as one") {
  CHECK(contains(refusal({"hi", "-o"}), "-o: expected a value FILE, got the end of the command line"));
  CHECK(contains(refusal({"-o", "--seed", "1", "hi"}), "-o: expected a value FILE, got '--seed'"));
  CHECK(contains(refusal({"-o", "--", "hi"}), "-o: expected a value FILE, got '--'"));
}

TEST_CASE("--json takes a value only behind an equals sign") {
  const CommandLine command = read({"--json", "hi", "-o", "x.wav"});
  CHECK(command.value("json") == "-");
  CHECK(command.positionals() == std::vector<std::string>{"hi"});
  CHECK(read({"--json=r.json"}).value("json") == "r.json");
}

TEST_CASE("spellings of other tools are understood") {
  CHECK(read({"--text", "hi"}).positionals() == std::vector<std::string>{"hi"});
  CHECK(read({"--out", "x.wav"}).value("output") == "x.wav");
  CHECK(read({"--output-file=x.wav"}).value("output") == "x.wav");
  CHECK(read({"--input-file", "t.txt"}).value("file") == "t.txt");
  CHECK(read({"--temp", "0.5"}).value("temperature") == "0.5");
}

TEST_CASE("there is one text: by argument, file or standard input") {
  CHECK(contains(refusal({"Hello", "world", "-o", "x.wav"}), "TEXT: expected one, got 2"));
  CHECK(
      contains(refusal({"Hello", "-f", "a.txt", "-o", "x.wav"}), "TEXT: expected none together with --file"));
  CHECK(contains(refusal({"-o", "x.wav"}), "TEXT: expected the words to speak"));
  const auto source = [](std::vector<const char*> arguments, bool terminal) {
    return read_say_options(read(std::move(arguments)), terminal).source;
  };
  CHECK(source({"-o", "x.wav"}, false) == TextSource::kStandardInput);
  CHECK(source({"-", "-o", "x.wav"}, true) == TextSource::kStandardInput);
  CHECK(source({"-f", "-", "-o", "x.wav"}, true) == TextSource::kStandardInput);
  CHECK(source({"-f", "t", "-o", "x.wav"}, true) == TextSource::kFile);
  CHECK(source({"", "-o", "x.wav"}, false) == TextSource::kArgument);
}

TEST_CASE("an output is required, its format known") {
  CHECK(contains(refusal({"hi"}), "-o out.wav, or -o - | aplay"));
  CHECK(refusal({"hi", "--dump-tokens"}) == "accepted");
  CHECK(refusal({"--list-devices"}) == "accepted");
  CHECK(contains(refusal({"hi", "-o", ""}), "--output"));
  CHECK(contains(refusal({"hi", "-o", "x", "--format", "mp3"}),
                 "--format: expected one of wav, flac, pcm, got 'mp3'"));
  const auto format = [](std::vector<const char*> arguments, const OutputTarget& target) {
    return choose_format(read_say_options(read(std::move(arguments)), true), target);
  };
  const OutputTarget regular{.shown = "x.flac", .path = "x.flac", .kind = OutputKind::kReplaced};
  CHECK(format({"hi", "-o", "x.flac"}, regular) == AudioFormat::kFlac);
  CHECK(format({"hi", "-o", "x.flac", "--format=pcm"}, regular) == AudioFormat::kPcm);
  CHECK(format({"hi", "-o", "-"}, {}) == AudioFormat::kWav);
  CHECK_THROWS_AS(
      format({"hi", "-o", "x.mp3"}, {.shown = "x.mp3", .path = "x.mp3", .kind = OutputKind::kReplaced}),
      UsageError);
  CHECK(contains(refusal({"hi", "-o", "x.wav", "--json=x.wav"}), "another file"));
}

TEST_CASE("an argument is shown on one line") {
  CHECK(in_quotes("a\nb\xff\x1b[0m\xc3\xa4") == "'a\\x0ab\\xff\\x1b[0m\xc3\xa4'");
  CHECK(in_quotes(std::string(500, 'x')).size() < 80);
}

}  // namespace drama3
