// Reads a command line by the table of options: exact names only, everything checked before it is used.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/option_table.h"
#include "lib/base/error.h"

namespace drama3 {

// A command line (or environment value) that cannot be run: exit code 2.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& sentence) : Error(sentence) {}
};

// Throws UsageError with the joined arguments.
template <typename... Parts>
[[noreturn]] void usage_error(const Parts&... parts) {
  throw UsageError(join(parts...));
}

// The argument in single quotes, on one line and cut at 60 bytes; control bytes and non-UTF-8 shown as \xNN.
std::string in_quotes(std::string_view argument);

// The options and the positional arguments of one call.
class CommandLine {
 public:
  // Reads the arguments after the program's name; UsageError names the argument that breaks a rule.
  CommandLine(Tool tool, std::span<const char* const> arguments);

  Tool tool() const { return tool_; }
  // Whether the option was given, under its own name or a hidden one.
  bool has(std::string_view name) const { return values_.contains(name); }
  // The value of an option that was given.
  const std::string& value(std::string_view name) const;
  // Every value of an option that may be repeated, in order; empty when it was not given.
  std::vector<std::string> values(std::string_view name) const;
  // The arguments that are not options, in order.
  const std::vector<std::string>& positionals() const { return positionals_; }

 private:
  struct Lexed;  // the checked arguments in the one spelling that CLI11 is given
  void store(const Lexed& lexed);

  Tool tool_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> positionals_;
};

}  // namespace drama3
