// Waveform and spectrogram of a reply.
#include "apps/bench_picture.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace drama3::bench {
namespace {

constexpr size_t kWindow = 1024;       // 23 ms at 44,100 Hz
constexpr double kTopHertz = 11025.0;  // speech has little above
constexpr double kQuietDecibel = -90.0;

// The bin's level in dB of the Hann-windowed stretch that begins at `begin`; 0 = a full-scale sine.
// A plain sum over the window: a picture has few enough bins, and needs no transform library.
class Analyser {
 public:
  explicit Analyser(std::span<const float> samples) : samples_(samples), window_(kWindow), cosine_(kWindow) {
    for (size_t i = 0; i < kWindow; ++i) {
      const double turn = 2.0 * std::numbers::pi * static_cast<double>(i) / kWindow;
      window_[i] = static_cast<float>(0.5 - 0.5 * std::cos(turn));
      cosine_[i] = static_cast<float>(std::cos(turn));
    }
  }

  void place(int64_t begin) {
    part_.assign(kWindow, 0.0f);
    for (size_t i = 0; i < kWindow; ++i) {
      const int64_t at = begin + static_cast<int64_t>(i);
      if (at >= 0 && at < static_cast<int64_t>(samples_.size())) {
        part_[i] = samples_[static_cast<size_t>(at)] * window_[i];
      }
    }
  }

  double decibel(size_t bin) const {
    float real = 0.0f;
    float imaginary = 0.0f;
    for (size_t i = 0; i < kWindow; ++i) {
      const size_t phase = (i * bin) % kWindow;
      real += part_[i] * cosine_[phase];
      imaginary += part_[i] * cosine_[(phase + kWindow * 3 / 4) % kWindow];
    }
    const double amplitude = 4.0 * std::hypot(real, imaginary) / kWindow;  // a Hann window halves it
    return 20.0 * std::log10(std::max(amplitude, 1e-9));
  }

 private:
  std::span<const float> samples_;
  std::vector<float> window_;
  std::vector<float> cosine_;
  std::vector<float> part_;
};

uint8_t shade(double decibel) {
  return static_cast<uint8_t>(std::lround(255.0 * std::clamp(1.0 - decibel / kQuietDecibel, 0.0, 1.0)));
}

}  // namespace

SoundPicture draw_sound(const std::string& id, std::span<const float> samples, int64_t sample_rate) {
  SoundPicture picture{.id = id};
  picture.seconds = static_cast<double>(samples.size()) / static_cast<double>(sample_rate);
  picture.top_hertz = std::min(kTopHertz, static_cast<double>(sample_rate) / 2.0);
  picture.low.assign(kPictureColumns, 0.0f);
  picture.high.assign(kPictureColumns, 0.0f);
  picture.loudness.assign(static_cast<size_t>(kPictureColumns * kPictureRows), 0);
  Analyser analyser(samples);
  const double bins = picture.top_hertz / static_cast<double>(sample_rate) * kWindow;
  for (int64_t column = 0; column < kPictureColumns; ++column) {
    const auto count = static_cast<int64_t>(samples.size());
    const int64_t begin = column * count / kPictureColumns;
    const int64_t end = std::max(begin + 1, (column + 1) * count / kPictureColumns);
    if (end > count) continue;
    const auto part = samples.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    const auto [low, high] = std::minmax_element(part.begin(), part.end());
    picture.low[static_cast<size_t>(column)] = *low;
    picture.high[static_cast<size_t>(column)] = *high;
    analyser.place((begin + end) / 2 - static_cast<int64_t>(kWindow / 2));
    for (int64_t row = 0; row < kPictureRows; ++row) {
      const double bin = (static_cast<double>(row) + 0.5) * bins / static_cast<double>(kPictureRows);
      picture.loudness[static_cast<size_t>(row * kPictureColumns + column)] =
          shade(analyser.decibel(static_cast<size_t>(std::lround(bin))));
    }
  }
  return picture;
}

}  // namespace drama3::bench
