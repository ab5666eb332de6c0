// The bytes of the text to speak, from argument, file or standard input.
#pragma once

#include <string>

#include "apps/messages.h"
#include "apps/say_options.h"

namespace drama3 {

// The raw bytes, the same for the same text from all three sources; Error for a file that cannot be read or
// is audio. Warns when TEXT names an existing file.
std::string read_say_text(const SayOptions& options, Messages& messages);

}  // namespace drama3
