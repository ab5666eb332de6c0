// The text of --version, from what the build recorded.
#include "apps/version_text.h"

#include "drama3/build_info.h"
#include "drama3/version.h"
#include "lib/engine/engine.h"

namespace drama3 {

std::string version_number() { return DRAMA3_VERSION; }

std::string version_text(Tool tool) {
  std::string paths;
  for (const std::string& path : list_cpu_paths()) paths += (paths.empty() ? "" : ", ") + path;
  std::string text = std::string(page_of(tool).name) + " " + DRAMA3_VERSION + "\n";
  text += "commit: " DRAMA3_COMMIT "\n";
  text += "compiler: " DRAMA3_COMPILER "\n";
  text += "CUDA: " DRAMA3_CUDA_TEXT "\n";
  text += "CPU paths: " + paths + "\n";
  text += "embedded voice: " DRAMA3_VOICE_TEXT "\n";
  return text;
}

}  // namespace drama3
