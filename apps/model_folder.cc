// The search for a checkpoint folder.
#include "apps/model_folder.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/sha256.h"

namespace drama3 {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDownload =
    "download one with: huggingface-cli download fishaudio/drama-3 --local-dir drama-3, then give -m drama-3";

bool is_folder(const fs::path& path) {
  std::error_code problem;
  return fs::is_directory(path, problem);
}

}  // namespace

std::string find_model(const std::optional<Setting>& chosen, const Messages& messages) {
  if (chosen) {
    if (is_folder(chosen->text)) return chosen->text;
    std::error_code problem;
    const bool exists = fs::exists(chosen->text, problem);
    fail(chosen->origin,
         ": expected a folder with config.json, tokenizer.json, *.safetensors and codec.pth, got ",
         exists ? "a file: " : "nothing at: ", chosen->text, "; ", kDownload);
  }
  std::error_code problem;
  const fs::path program = fs::read_symlink("/proc/self/exe", problem).parent_path();
  const fs::path installed = program.parent_path() / "share" / "drama3" / "voice-mini";
  std::string looked = installed.string();
  if (is_folder(installed)) {
    messages.note("model: the embedded voice " + installed.string());
    return installed.string();
  }
  // A program in the build folder of a source tree: the tree is one of the folders above it.
  for (fs::path above = program; above.has_relative_path(); above = above.parent_path()) {
    const fs::path voice = above / "corpus" / "voice-mini";
    const fs::path random = above / "tests" / "data" / "golden" / "tiny";
    if (is_folder(voice)) {
      messages.note("model: the embedded voice " + voice.string());
      return voice.string();
    }
    if (is_folder(random)) {
      messages.note("model: the tiny random checkpoint " + random.string() + ", which speaks noise");
      return random.string();
    }
  }
  fail("--model: expected a model folder, got none, and no embedded voice at ", looked, "; ", kDownload);
}

void print_digests(const std::string& model, const Messages& messages) {
  std::error_code problem;
  std::vector<fs::path> files;
  for (fs::directory_iterator at(model, problem), end; !problem && at != end; at.increment(problem)) {
    std::error_code unknown;
    if (at->is_regular_file(unknown)) files.push_back(at->path());
  }
  if (problem) fail(model, ": expected a folder that can be listed, got ", problem.message());
  std::sort(files.begin(), files.end());
  constexpr size_t kPart = size_t{16} << 20;
  for (const fs::path& path : files) {
    const MappedFile file(path.string());
    Sha256 hash;
    for (size_t begin = 0; begin < file.bytes().size(); begin += kPart) {
      const auto part = file.bytes().subspan(begin, std::min(kPart, file.bytes().size() - begin));
      hash.update(part);
      file.release_pages(begin, part.size());
    }
    file.check_intact();
    messages.line(hash.hex() + "  " + path.filename().string());
  }
}

}  // namespace drama3
