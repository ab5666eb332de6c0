// Lines on standard error.
#include "apps/messages.h"

#include <unistd.h>

#include <cerrno>

namespace drama3 {

void write_stderr(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

std::string on_one_line(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string line;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      line += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      line += c;
    }
  }
  return line;
}

void Messages::error(std::string_view sentence) const {
  write_stderr(tool_ + ": error: " + on_one_line(sentence) + "\n");
}

void Messages::warning(std::string_view sentence) {
  warnings_.emplace_back(sentence);
  if (verbosity_ != Verbosity::kQuiet) write_stderr(tool_ + ": warning: " + on_one_line(sentence) + "\n");
}

void Messages::note(std::string_view sentence) const {
  if (verbosity_ != Verbosity::kQuiet) write_stderr(tool_ + ": note: " + on_one_line(sentence) + "\n");
}

void Messages::detail(std::string_view sentence) const {
  if (verbosity_ == Verbosity::kVerbose) write_stderr(tool_ + ": note: " + on_one_line(sentence) + "\n");
}

void Messages::line(std::string_view text) const { write_stderr(spelled_line(text)); }

std::string Messages::spelled_line(std::string_view text) const {
  return verbosity_ == Verbosity::kQuiet ? "" : on_one_line(text) + "\n";
}

}  // namespace drama3
