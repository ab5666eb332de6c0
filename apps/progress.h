// The progress bar on a terminal, and the words for durations that it shares with the closing line.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace drama3 {

// One state of the work.
struct ProgressState {
  double share = 0;            // done, 0..1
  double audio_seconds = 0;    // finished so far
  double elapsed_seconds = 0;  // since the work began
};

// "[=====>    ] 3.4 s audio, RTF 0.15, 2 s left".
std::string progress_text(const ProgressState& state);

// Redraws one line of standard error at most ten times a second; erases it when it goes.
class ProgressBar {
 public:
  explicit ProgressBar(bool shown) : shown_(shown), start_(Clock::now()) {}
  ~ProgressBar() { erase(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(double share, double audio_seconds);
  void erase();

 private:
  using Clock = std::chrono::steady_clock;
  bool shown_;
  bool drawn_ = false;
  Clock::time_point start_;
  Clock::time_point last_{};
};

// Printf's "%.*f" in the C locale.
std::string decimal(double value, int digits);

}  // namespace drama3
