// The pages agree: every option that is shown stands in --help, man page and all three completions, and no
// other.
#include "apps/option_pages.h"

#include <doctest/doctest.h>

#include <regex>
#include <set>
#include <string>

namespace drama3 {
namespace {

using Names = std::set<std::string>;

Names names_in(const std::string& page, const std::string& pattern) {
  const std::regex expression(pattern);
  Names names;
  for (auto found = std::sregex_iterator(page.begin(), page.end(), expression);
       found != std::sregex_iterator(); ++found) {
    names.insert((*found)[1]);
  }
  return names;
}

std::string without(std::string text, const std::string& part) {
  for (size_t at; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
  return text;
}

}  // namespace

TEST_CASE("help, man page and completions list the same options") {
  for (const ToolPage& page : tool_pages()) {
    Names shown, hidden;
    for (const Option& option : options_of(page.tool)) {
      (option.stands_for.empty() ? shown : hidden).insert("--" + std::string(option.name));
    }
    CHECK(names_in(help_page(page.tool), "\n  (?:-[a-z], |    )(--[a-z-]+)") == shown);
    const std::string man = without(man_page(page.tool, "2026-01-01", "1.2.3"), "\\");
    CHECK(names_in(man, "\n[.]TP\n(?:fB-[a-z]fR, )?fB(--[a-z-]+)fR") == shown);
    CHECK(names_in(bash_completion(page.tool), "[ '](--[a-z-]+)(?=[ '])") == shown);
    CHECK(names_in(zsh_completion(page.tool), "['\\)](--[a-z-]+)=?-?\\[") == shown);
    Names fish;
    for (const std::string& name : names_in(fish_completion(page.tool), " -l ([a-z-]+)"))
      fish.insert("--" + name);
    CHECK(fish == shown);
    for (const std::string& name : hidden) CHECK(help_page(page.tool).find(name + " ") == std::string::npos);
  }
}

TEST_CASE("letters and names are unique, every option has its words") {
  for (const ToolPage& page : tool_pages()) {
    std::set<char> letters;
    Names names;
    for (const Option& option : options_of(page.tool)) {
      CHECK(names.insert(std::string(option.name)).second);
      if (option.letter != 0) CHECK(letters.insert(option.letter).second);
      CHECK(option.help.empty() == !option.stands_for.empty());
      CHECK((option.form == ValueForm::kNone) == option.value_name.empty());
      CHECK((option.completion == Completion::kChoices) == !option.choices.empty());
    }
  }
}

TEST_CASE("help begins with examples, fits 100 columns and names environment and exit codes") {
  const std::string help = help_page(Tool::kSay);
  CHECK(help.find("Examples:\n") == 0);
  for (const char* part :
       {"DRAMA3_MODEL", "DRAMA3_DEVICE", "DRAMA3_THREADS", "Exit codes:", "130, 141, 143"}) {
    CHECK(help.find(part) != std::string::npos);
  }
  size_t column = 0;
  for (char c : help) {
    column = c == '\n' ? 0 : column + 1;
    REQUIRE(column <= 100);
  }
}

TEST_CASE("a man page keeps dashes and lines that begin with a full stop") {
  const std::string man = man_page(Tool::kSay, "2026-01-01", "1.2.3");
  CHECK(man.find(".TH \"DRAMA3\\-SAY\" 1 \"2026-01-01\" \"drama3 1.2.3\"") == 0);
  CHECK(man.find("\\fB\\-\\-output\\fR \\fIFILE\\fR") != std::string::npos);
}

}  // namespace drama3
