// Settings from flags and environment, and the reading of their numbers.
#include "apps/option_values.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace drama3 {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<Setting> setting(const CommandLine& command, std::string_view name) {
  if (command.has(name)) return Setting{"--" + std::string(name), command.value(name)};
  for (const Option& option : options_of(command.tool())) {
    if (option.name != name || option.variable.empty()) continue;
    const std::string variable(option.variable);
    const char* text = std::getenv(variable.c_str());
    if (text != nullptr && *text != '\0') return Setting{variable, text};
  }
  return std::nullopt;
}

uint64_t parse_whole(const Setting& setting, const WholeRange& range) {
  const std::string& text = setting.text;
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  const bool leading_zero = text.size() > 1 && text[0] == '0';
  const bool whole = problem == std::errc() && stop == end && is_digit(text[0]) && !leading_zero;
  if (!whole || number < range.least || number > range.most) {
    usage_error(setting.origin, ": expected a whole number from ", range.least, " to ", range.most, ", got ",
                in_quotes(text), range.remedy.empty() ? "" : "; ", range.remedy);
  }
  return number;
}

double parse_real(const Setting& setting, const RealRange& range) {
  const std::string& text = setting.text;
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  const bool decimal =
      std::any_of(text.begin(), text.end(), is_digit) && problem == std::errc() && stop == end;
  const bool low = range.least_included ? number < range.least : number <= range.least;
  if (!decimal || low || number > range.most) {
    usage_error(setting.origin, ": expected a number ", range.words, ", got ", in_quotes(text));
  }
  return number;
}

std::string parse_choice(const Setting& setting, std::string_view choices) {
  std::string list;
  while (!choices.empty()) {
    const std::string_view choice = choices.substr(0, choices.find(' '));
    if (setting.text == choice) return setting.text;
    list += (list.empty() ? "" : ", ") + std::string(choice);
    choices.remove_prefix(std::min(choices.size(), choice.size() + 1));
  }
  usage_error(setting.origin, ": expected one of ", list, ", got ", in_quotes(setting.text));
}

std::string parse_device(const Setting& setting, bool with_ref) {
  const std::string& text = setting.text;
  if (text == "cpu" || text == "cuda" || text == (with_ref ? "ref" : "auto")) return text;
  if (text == "gpu") return "cuda";
  const std::string number = text.starts_with("cuda:") ? text.substr(5) : text;
  if (number.empty() || number.size() > 4 || !std::all_of(number.begin(), number.end(), is_digit) ||
      (number.size() > 1 && number[0] == '0')) {
    usage_error(setting.origin, ": expected ", with_ref ? "ref" : "auto", ", cpu, cuda or cuda:N, got ",
                in_quotes(text));
  }
  return "cuda:" + number;
}

}  // namespace drama3
