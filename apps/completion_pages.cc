// The completion scripts of bash, zsh and fish, made from the table of options.
#include <algorithm>
#include <vector>

#include "apps/option_pages.h"

namespace drama3 {
namespace {

std::vector<Option> shown_options(Tool tool) {
  std::vector<Option> options = options_of(tool);
  std::erase_if(options, [](const Option& option) { return !option.stands_for.empty(); });
  return options;
}

// The tool's name as a shell identifier: drama3_say.
std::string identifier(Tool tool) {
  std::string name(page_of(tool).name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string bash_names(const Option& option) {
  const std::string long_name = "--" + std::string(option.name);
  return option.letter == 0 ? long_name : std::string{'-', option.letter, '|'} + long_name;
}

std::string bash_reply(const Option& option) {
  switch (option.completion) {
    case Completion::kFile:
      return "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\"))";
    case Completion::kFolder:
      return "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$word\"))";
    case Completion::kChoices:
      return "COMPREPLY=($(compgen -W '" + std::string(option.choices) + "' -- \"$word\"))";
    case Completion::kNothing:
      break;
  }
  return "COMPREPLY=()";
}

// Text inside single quotes of zsh's _arguments: brackets, colons and quotes escaped.
std::string zsh_text(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':') escaped += '\\';
    if (c == '\'') {
      escaped += "'\\''";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string zsh_action(const Option& option) {
  switch (option.completion) {
    case Completion::kFile:
      return "_files";
    case Completion::kFolder:
      return "_files -/";
    case Completion::kChoices:
      return "(" + zsh_text(option.choices) + ")";
    case Completion::kNothing:
      break;
  }
  return " ";
}

std::string zsh_spec(const Option& option) {
  const std::string name = "--" + std::string(option.name);
  const std::string help = "[" + zsh_text(option.help) + "]";
  std::string value;
  if (option.form == ValueForm::kRequired)
    value = ":" + std::string(option.value_name) + ":" + zsh_action(option);
  if (option.form == ValueForm::kOptional)
    value = "::" + std::string(option.value_name) + ":" + zsh_action(option);
  const std::string equals = option.form == ValueForm::kRequired   ? "="
                             : option.form == ValueForm::kOptional ? "=-"
                                                                   : "";
  if (option.letter == 0) return "'" + name + equals + help + value + "'";
  const std::string letter{'-', option.letter};
  return "'(" + letter + " " + name + ")" + letter + help + value + "' \\\n  '(" + letter + " " + name + ")" +
         name + equals + help + value + "'";
}

std::string fish_text(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '\'' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

std::string bash_completion(Tool tool) {
  const std::string function = "_" + identifier(tool);
  std::string names, cases;
  for (const Option& option : shown_options(tool)) {
    names += (names.empty() ? "--" : " --") + std::string(option.name);
    if (option.letter != 0) names += std::string{' ', '-', option.letter};
    if (option.form == ValueForm::kRequired) {
      cases += "    " + bash_names(option) + ") " + bash_reply(option) + "; return ;;\n";
    }
  }
  return "# Completion of " + std::string(page_of(tool).name) + " for bash.\n" + function +
         "() {\n  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  case $previous in\n" +
         cases + "  esac\n  if [[ $word == -* ]]; then\n    COMPREPLY=($(compgen -W '" + names +
         "' -- \"$word\"))\n  fi\n}\ncomplete -F " + function + " " + std::string(page_of(tool).name) + "\n";
}

std::string zsh_completion(Tool tool) {
  std::string text = "#compdef " + std::string(page_of(tool).name) + "\n_arguments -S";
  for (const Option& option : shown_options(tool)) text += " \\\n  " + zsh_spec(option);
  if (!page_of(tool).argument.empty()) text += " \\\n  '*:TEXT: '";
  return text + "\n";
}

std::string fish_completion(Tool tool) {
  const std::string start = "complete -c " + std::string(page_of(tool).name);
  std::string text = "# Completion of " + std::string(page_of(tool).name) + " for fish.\n" + start + " -f\n";
  for (const Option& option : shown_options(tool)) {
    text += start + " -l " + std::string(option.name);
    if (option.letter != 0) text += std::string(" -s ") + option.letter;
    if (option.form == ValueForm::kRequired) {
      text += option.completion == Completion::kFile      ? " -r -F"
              : option.completion == Completion::kFolder  ? " -x -a '(__fish_complete_directories)'"
              : option.completion == Completion::kChoices ? " -x -a '" + fish_text(option.choices) + "'"
                                                          : std::string(" -x");
    }
    text += " -d '" + fish_text(option.help) + "'\n";
  }
  return text;
}

}  // namespace drama3
