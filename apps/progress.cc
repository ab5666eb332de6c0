// The progress bar.
#include "apps/progress.h"

#include <algorithm>
#include <charconv>

#include "apps/messages.h"

namespace drama3 {

std::string decimal(double value, int digits) {
  char text[400];
  const auto result = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, digits);
  return std::string(text, result.ptr);
}

std::string progress_text(const ProgressState& state) {
  static constexpr int kColumns = 20;
  const double share = std::clamp(state.share, 0.0, 1.0);
  const int filled = static_cast<int>(share * kColumns);
  std::string text = "[" + std::string(static_cast<size_t>(filled), '=');
  if (filled < kColumns) text += ">" + std::string(static_cast<size_t>(kColumns - filled - 1), ' ');
  text += "] " + decimal(state.audio_seconds, 1) + " s audio";
  if (state.audio_seconds > 0) text += ", RTF " + decimal(state.elapsed_seconds / state.audio_seconds, 2);
  if (share > 0) text += ", " + decimal(state.elapsed_seconds * (1 - share) / share, 0) + " s left";
  return text;
}

void ProgressBar::update(double share, double audio_seconds) {
  const Clock::time_point now = Clock::now();
  if (!shown_ || (drawn_ && now - last_ < std::chrono::milliseconds(100))) return;
  last_ = now;
  drawn_ = true;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  write_stderr("\r" +
               progress_text({.share = share, .audio_seconds = audio_seconds, .elapsed_seconds = elapsed}) +
               "\033[K");
}

void ProgressBar::erase() {
  if (drawn_) write_stderr("\r\033[K");
  drawn_ = false;
}

}  // namespace drama3
