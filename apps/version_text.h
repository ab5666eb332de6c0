// The text of --version.
#pragma once

#include <string>

#include "apps/option_table.h"

namespace drama3 {

// "0.1.0".
std::string version_number();

// Line 1 "TOOL X.Y.Z", then commit, compiler, CUDA, CPU paths and the embedded voice.
std::string version_text(Tool tool);

}  // namespace drama3
