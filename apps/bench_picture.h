// Pictures of one reply's sound for the report: its waveform and its spectrogram, as plain numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace drama3::bench {

inline constexpr int64_t kPictureColumns = 800;
inline constexpr int64_t kPictureRows = 160;

// Columns are equal stretches of time.
struct SoundPicture {
  std::string id;
  double seconds = 0.0;
  double top_hertz = 0.0;         // upper edge of the spectrogram
  std::vector<float> low;         // [columns] least sample
  std::vector<float> high;        // [columns] greatest sample
  std::vector<uint8_t> loudness;  // [rows, columns], lowest frequency first; 0 = -90 dB or less, 255 = 0 dB
};

// Draws samples (full scale 1) of a reply; empty columns where there are no samples.
SoundPicture draw_sound(const std::string& id, std::span<const float> samples, int64_t sample_rate);

}  // namespace drama3::bench
