// Reads a command line: a strict reading by our rules first, then CLI11 over the one spelling that is left.
#include "apps/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <optional>

#include "lib/base/check.h"

namespace drama3 {

// CLI11 2.1 alone would take -hello for -h, drop the value of --name= and accept -o=x, so it is given only
// "--name VALUE", "--name" and, after "--", the positional arguments.
struct CommandLine::Lexed {
  std::vector<std::string> options;
  std::vector<std::string> positionals;
};

namespace {

// Reads the arguments one by one and remembers what was given.
class Lexer {
 public:
  Lexer(Tool tool, std::span<const char* const> arguments)
      : options_(options_of(tool)), arguments_(arguments.begin(), arguments.end()) {}

  void run(std::vector<std::string>* options, std::vector<std::string>* positionals) {
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (argument == "--") {
        positionals->insert(positionals->end(), arguments_.begin() + static_cast<std::ptrdiff_t>(next_),
                            arguments_.end());
        return;
      }
      if (argument.empty() || argument[0] != '-' || argument == "-") {
        positionals->push_back(argument);
      } else {
        read_option(argument, options, positionals);
      }
    }
  }

 private:
  const Option* find(std::string_view spelled) const {
    for (const Option& option : options_) {
      const bool by_letter =
          option.letter != 0 && spelled.size() == 2 && spelled[0] == '-' && spelled[1] == option.letter;
      const bool by_name = spelled.starts_with("--") && spelled.substr(2) == option.name;
      if (by_letter || by_name) return &option;
    }
    return nullptr;
  }

  void read_option(const std::string& argument, std::vector<std::string>* options,
                   std::vector<std::string>* positionals) {
    const size_t equals = argument.find('=');
    const std::string spelled = argument.substr(0, equals);
    const Option* option = find(spelled);
    if (option == nullptr) {
      usage_error(in_quotes(argument), ": expected an option by its full name, got none of that name; ",
                  "put -- before a text that begins with a dash");
    }
    std::optional<std::string> value;
    if (equals != std::string::npos) {
      if (!spelled.starts_with("--")) {
        usage_error(in_quotes(argument), ": expected ", spelled, " VALUE, got an equals sign; write ",
                    spelled, " ", in_quotes(argument.substr(equals + 1)), " or --", option->name, "=VALUE");
      }
      if (option->form == ValueForm::kNone) {
        usage_error(spelled, ": expected no value, got ", in_quotes(argument.substr(equals + 1)), "; write ",
                    spelled, " alone");
      }
      value = argument.substr(equals + 1);
    } else if (option->form == ValueForm::kRequired) {
      value = following_value(spelled, *option);
    } else if (option->form == ValueForm::kOptional) {
      value = std::string(option->implied);
    }
    add(spelled, *option, value, options, positionals);
  }

  std::string following_value(const std::string& spelled, const Option& option) {
    const bool ended = next_ >= arguments_.size();
    if (ended || arguments_[next_] == "--" || find(arguments_[next_]) != nullptr) {
      usage_error(spelled, ": expected a value ", option.value_name, ", got ",
                  ended ? std::string("the end of the command line") : in_quotes(arguments_[next_]),
                  "; write ", spelled, " ", option.value_name);
    }
    return arguments_[next_++];
  }

  void add(const std::string& spelled, const Option& option, const std::optional<std::string>& value,
           std::vector<std::string>* options, std::vector<std::string>* positionals) {
    if (option.stands_for == "TEXT") {
      positionals->push_back(*value);
      return;
    }
    const std::string name(option.stands_for.empty() ? option.name : option.stands_for);
    const bool again = std::find(seen_.begin(), seen_.end(), name) != seen_.end();
    if (again && option.form != ValueForm::kNone && !option.repeatable) {
      usage_error(spelled, ": expected once, got it again with the value ", in_quotes(*value), "; give --",
                  name, " once");
    }
    if (again && !option.repeatable) return;
    seen_.push_back(name);
    options->push_back("--" + name);
    if (value) options->push_back(*value);
  }

  std::vector<Option> options_;
  std::vector<std::string> arguments_;
  std::vector<std::string> seen_;
  size_t next_ = 0;
};

// Length of the valid UTF-8 sequence at the start of text, 0 when there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = byte(0) < 0x80 ? 1 : byte(0) < 0xc2 ? 0 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (byte(0) > 0xf4 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string in_quotes(std::string_view argument) {
  static constexpr size_t kLongest = 60;
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text = "'";
  while (!argument.empty()) {
    if (text.size() > kLongest) return text + "...'";
    const auto first = static_cast<unsigned char>(argument[0]);
    const size_t length = first < 0x20 || first == 0x7f ? 0 : utf8_length(argument);
    if (length == 0) {
      text += {'\\', 'x', kHex[first >> 4], kHex[first & 15]};
    } else {
      text += argument.substr(0, length);
    }
    argument.remove_prefix(std::max<size_t>(length, 1));
  }
  return text + "'";
}

CommandLine::CommandLine(Tool tool, std::span<const char* const> arguments) : tool_(tool) {
  Lexed lexed;
  Lexer(tool, arguments).run(&lexed.options, &lexed.positionals);
  store(lexed);
}

void CommandLine::store(const Lexed& lexed) {
  CLI::App app;
  app.set_help_flag();
  std::deque<std::string> slots;  // keeps its addresses
  std::deque<std::vector<std::string>> lists;
  std::vector<std::pair<std::string, CLI::Option*>> added;
  for (const Option& option : options_of(tool_)) {
    if (!option.stands_for.empty()) continue;
    const std::string name = "--" + std::string(option.name);
    CLI::Option* entry = nullptr;
    if (option.form == ValueForm::kNone) {
      entry = app.add_flag(name);
    } else if (option.repeatable) {
      entry = app.add_option(name, lists.emplace_back())->allow_extra_args(false);
    } else {
      entry = app.add_option(name, slots.emplace_back());
    }
    added.emplace_back(option.name, entry);
  }
  std::vector<std::string> arguments(lexed.options.rbegin(), lexed.options.rend());
  try {
    app.parse(std::move(arguments));  // CLI11 takes a vector in reverse order
  } catch (const CLI::ParseError& error) {
    usage_error("command line: ", error.what());
  }
  for (const auto& [name, entry] : added) {
    if (entry->count() > 0) values_[name] = entry->results();
  }
  positionals_ = lexed.positionals;
}

const std::string& CommandLine::value(std::string_view name) const {
  const auto found = values_.find(name);
  INVARIANT(found != values_.end(), "option --", name, " was not given");
  return found->second.front();
}

std::vector<std::string> CommandLine::values(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

}  // namespace drama3
