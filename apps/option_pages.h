// Pages made from the table of options: --help, man pages, and completions of bash, zsh and fish.
#pragma once

#include <string>
#include <string_view>

#include "apps/option_table.h"

namespace drama3 {

// The text of --help: examples first, then usage, options and exit codes.
std::string help_page(Tool tool);

// A man page (section 1) dated `date` (YYYY-MM-DD) for release `version`.
std::string man_page(Tool tool, std::string_view date, std::string_view version);

// The completion script of one shell.
std::string bash_completion(Tool tool);
std::string zsh_completion(Tool tool);
std::string fish_completion(Tool tool);

}  // namespace drama3
