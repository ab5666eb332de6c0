// The pages of --help and man, made from the table of options.
#include "apps/option_pages.h"

#include <algorithm>
#include <vector>

namespace drama3 {
namespace {

constexpr size_t kWidth = 100;  // columns of --help

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(separator));
    parts.push_back(part);
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return parts;
}

// The words of text in lines of kWidth, the first starting at column `at`, the others indented to `indent`.
std::string wrapped(std::string_view text, size_t at, size_t indent) {
  std::string lines;
  size_t column = at;
  for (std::string_view word : split(text, ' ')) {
    if (column + 1 + word.size() > kWidth) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > at || !lines.empty()) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines;
}

// "-o, --output FILE" with the marks of the page in front of names and values.
std::string spelling(const Option& option) {
  std::string text = option.letter != 0 ? std::string{'-', option.letter, ',', ' '} : std::string("    ");
  text += "--" + std::string(option.name);
  if (option.form == ValueForm::kRequired) text += " " + std::string(option.value_name);
  if (option.form == ValueForm::kOptional) text += "[=" + std::string(option.value_name) + "]";
  return text;
}

std::string help_text(const Option& option) {
  std::string text(option.help);
  if (!option.variable.empty()) text += " [" + std::string(option.variable) + "]";
  return text;
}

std::string table_lines(std::string_view table) {
  size_t widest = 0;
  for (std::string_view line : split(table, '\n')) widest = std::max(widest, line.find('\t'));
  std::string lines;
  for (std::string_view line : split(table, '\n')) {
    const size_t tab = line.find('\t');
    std::string left = "  " + std::string(line.substr(0, tab));
    left.resize(widest + 4, ' ');
    lines += left + wrapped(line.substr(tab + 1), left.size(), left.size()) + "\n";
  }
  return lines;
}

// Text as roff: backslashes and dashes escaped, no line that starts with a control character.
std::string roff(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n')) {
      escaped += "\\&";
      escaped += c;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string roff_option(const Option& option) {
  std::string text = ".TP\n";
  if (option.letter != 0) text += std::string("\\fB\\-") + option.letter + "\\fR, ";
  text += "\\fB" + roff("--" + std::string(option.name)) + "\\fR";
  const std::string value = "\\fI" + std::string(option.value_name) + "\\fR";
  if (option.form == ValueForm::kRequired) text += " " + value;
  if (option.form == ValueForm::kOptional) text += "[=" + value + "]";
  return text + "\n" + roff(option.help) + ".\n";
}

}  // namespace

std::string help_page(Tool tool) {
  const ToolPage& page = page_of(tool);
  std::string text = "Examples:\n";
  for (std::string_view line : split(page.examples, '\n')) {
    const size_t tab = line.find('\t');
    text += "  # " + std::string(line.substr(tab + 1)) + "\n  " + std::string(line.substr(0, tab)) + "\n";
  }
  text += "\nUsage: " + std::string(page.name) + " [OPTIONS]" + (page.argument.empty() ? "" : " ") +
          std::string(page.argument) + "\n\n";
  for (std::string_view paragraph : split(page.description, '\n')) text += wrapped(paragraph, 0, 0) + "\n";
  text += "\nOptions:\n";
  size_t widest = 0;
  for (const Option& option : options_of(tool)) {
    if (option.stands_for.empty()) widest = std::max(widest, spelling(option).size());
  }
  for (const Option& option : options_of(tool)) {
    if (!option.stands_for.empty()) continue;
    std::string left = "  " + spelling(option);
    left.resize(widest + 4, ' ');
    text += left + wrapped(help_text(option), left.size(), left.size()) + "\n";
  }
  return text + "\nExit codes:\n" + table_lines(page.exit_codes);
}

std::string man_page(Tool tool, std::string_view date, std::string_view version) {
  const ToolPage& page = page_of(tool);
  std::string title(page.name);
  std::transform(title.begin(), title.end(), title.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  std::string text = ".TH \"" + roff(title) + "\" 1 \"" + std::string(date) + "\" \"drama3 " +
                     std::string(version) + "\" \"User Commands\"\n";
  text += ".SH NAME\n" + roff(page.name) + " \\- " + roff(page.summary) + "\n";
  text += ".SH SYNOPSIS\n.B " + roff(page.name) + "\n[\\fIOPTIONS\\fR]";
  if (!page.argument.empty()) text += " " + roff(page.argument);
  text += "\n.SH DESCRIPTION\n";
  for (std::string_view paragraph : split(page.description, '\n')) text += ".PP\n" + roff(paragraph) + "\n";
  text += ".SH OPTIONS\n";
  for (const Option& option : options_of(tool)) {
    if (option.stands_for.empty()) text += roff_option(option);
  }
  text += ".SH ENVIRONMENT\n";
  for (const Option& option : options_of(tool)) {
    if (option.variable.empty()) continue;
    text += ".TP\n.B " + std::string(option.variable) + "\nUsed when " +
            roff("--" + std::string(option.name)) + " is not given.\n";
  }
  text += ".SH \"EXIT STATUS\"\n";
  for (std::string_view line : split(page.exit_codes, '\n')) {
    const size_t tab = line.find('\t');
    text += ".TP\n.B " + roff(line.substr(0, tab)) + "\n" + roff(line.substr(tab + 1)) + ".\n";
  }
  text += ".SH EXAMPLES\n";
  for (std::string_view line : split(page.examples, '\n')) {
    const size_t tab = line.find('\t');
    text += ".TP\n" + roff(line.substr(tab + 1)) + ":\n.nf\n" + roff(line.substr(0, tab)) + "\n.fi\n";
  }
  return text;
}

}  // namespace drama3
