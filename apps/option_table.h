// The one table of options that the parser, --help, the man pages and the shell completions are made from.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace drama3 {

// The command-line tools; values are bits of Option::tools.
enum class Tool : unsigned { kSay = 1, kOracle = 2, kBench = 4 };

// What follows an option's name.
enum class ValueForm {
  kNone,      // a flag
  kRequired,  // --name VALUE or --name=VALUE
  kOptional,  // --name or --name=VALUE, never a separate argument
};

// What a shell offers after an option's name.
enum class Completion { kNothing, kFile, kFolder, kChoices };

// One option of one or more tools.
struct Option {
  unsigned tools = 0;                 // bits of Tool
  std::string_view name = {};         // long name without the two dashes
  char letter = 0;                    // short name, 0 for none
  ValueForm form = ValueForm::kNone;  // what follows the name
  std::string_view value_name = {};   // word for the value in --help, upper case
  std::string_view implied = {};      // value of a kOptional option given bare
  bool repeatable = false;            // may be given several times, each with another value
  Completion completion = Completion::kNothing;
  std::string_view choices = {};     // offered values, separated by blanks
  std::string_view variable = {};    // environment variable with the same meaning
  std::string_view stands_for = {};  // hidden spelling of the option of this name ("TEXT": of the text)
  std::string_view help = {};        // one sentence without a full stop
};

// What a tool's pages say beside its options.
struct ToolPage {
  Tool tool = Tool::kSay;
  std::string_view name = {};         // drama3-say
  std::string_view summary = {};      // one line
  std::string_view argument = {};     // the positional argument in the usage line, empty for none
  std::string_view description = {};  // paragraphs, one a line
  std::string_view examples = {};     // lines "command<TAB>what it does"
  std::string_view exit_codes = {};   // lines "code<TAB>meaning"
};

// Every option of the tool, hidden spellings included, in the order of --help.
std::vector<Option> options_of(Tool tool);

// The page of the tool.
const ToolPage& page_of(Tool tool);

// Every tool's page.
std::span<const ToolPage> tool_pages();

}  // namespace drama3
