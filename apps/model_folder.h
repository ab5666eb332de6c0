// Which checkpoint folder a tool opens.
#pragma once

#include <optional>
#include <string>

#include "apps/messages.h"
#include "apps/option_values.h"

namespace drama3 {

// The folder of --model or DRAMA3_MODEL, else the embedded voice (beside the installed program or in the
// source tree), else the random test checkpoint; what is taken by default is said in one note. Error when it
// is not a folder, listing what was looked for.
std::string find_model(const std::optional<Setting>& chosen, const Messages& messages);

// One line "HEX  NAME", as sha256sum writes it, for every file of a checkpoint folder, by name. Error when a
// file cannot be read.
void print_digests(const std::string& model, const Messages& messages);

}  // namespace drama3
