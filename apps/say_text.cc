// Reading the text to speak.
#include "apps/say_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "lib/base/error.h"
#include "lib/base/system_calls.h"

namespace drama3 {
namespace {

// No text is this long; a limit keeps an endless input from filling the memory.
constexpr size_t kMostBytes = size_t{64} << 20;
constexpr std::string_view kSwapHint = "-f is the text to read, -o the audio to write";

std::string read_all(int fd, const std::string& shown) {
  std::string text;
  std::array<char, 65536> block;
  while (true) {
    const ssize_t count = sys::read(fd, block.data(), block.size());
    if (count < 0) fail(shown, ": expected to read the text, got: ", error_text(errno));
    if (count == 0) return text;
    text.append(block.data(), static_cast<size_t>(count));
    if (text.size() > kMostBytes)
      fail(shown, ": expected a text of at most ", kMostBytes, " bytes, got more");
  }
}

bool begins_as_audio(const std::string& text) {
  for (const char* magic : {"RIFF", "fLaC", "OggS", "ID3"}) {
    if (text.starts_with(magic)) return true;
  }
  return false;
}

std::string read_file(const std::string& path) {
  struct Descriptor {
    int fd;
    ~Descriptor() {
      if (fd >= 0) sys::close(fd);
    }
  };
  const Descriptor file{sys::open(path.c_str(), O_RDONLY | O_NOCTTY)};
  if (file.fd < 0) {
    const int reason = errno;
    const bool audio_name = reason == ENOENT && format_of_path(path).has_value();
    fail(path, ": expected a text file, got: ", error_text(reason), audio_name ? "; " : "",
         audio_name ? kSwapHint : "");
  }
  const std::string text = read_all(file.fd, path);
  if (begins_as_audio(text)) fail(path, ": expected a text file, got audio; ", kSwapHint);
  return text;
}

bool names_a_file(const std::string& text) {
  struct ::stat status {};
  return text.find('\0') == std::string::npos && ::stat(text.c_str(), &status) == 0 &&
         S_ISREG(status.st_mode);
}

}  // namespace

std::string read_say_text(const SayOptions& options, Messages& messages) {
  if (options.source == TextSource::kStandardInput) return read_all(STDIN_FILENO, "standard input");
  if (options.source == TextSource::kFile) return read_file(options.text);
  if (names_a_file(options.text)) {
    messages.warning("TEXT: the name of an existing file is spoken as it stands; use -f " + options.text +
                     " to speak what the file says");
  }
  return options.text;
}

}  // namespace drama3
