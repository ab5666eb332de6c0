// Waveform and spectrogram of a reply as SVG, the latter as an inline bitmap.
#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "apps/bench_plots.h"
#include "apps/progress.h"

namespace drama3::bench {
namespace {

constexpr double kWidth = 960;
constexpr double kLeft = 84;
constexpr double kPlotWidth = kWidth - kLeft - 20;
constexpr double kWaveHeight = 90;
constexpr double kSpectrumTop = kWaveHeight + 14;
constexpr double kSpectrumHeight = 220;

std::string base64(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

void append(std::string& bytes, uint32_t value, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
}

// From dark blue over red and orange to pale yellow, for 0 to 255.
std::array<uint8_t, 3> heat(int level) {
  static constexpr std::array<std::array<double, 3>, 5> kStops{
      {{8, 8, 32}, {70, 20, 110}, {185, 45, 90}, {250, 140, 40}, {252, 250, 190}}};
  const double place = level / 255.0 * (kStops.size() - 1);
  const auto from = std::min(static_cast<size_t>(place), kStops.size() - 2);
  const double share = place - static_cast<double>(from);
  std::array<uint8_t, 3> colour{};
  for (size_t i = 0; i < 3; ++i) {
    colour[i] = static_cast<uint8_t>(kStops[from][i] + share * (kStops[from + 1][i] - kStops[from][i]));
  }
  return colour;
}

// A Windows bitmap of 8 bits a pixel with a palette; its rows run from the bottom up, as ours do.
std::string bitmap(const SoundPicture& picture) {
  static constexpr uint32_t kHeaderBytes = 14 + 40 + 256 * 4;
  static_assert(kPictureColumns % 4 == 0, "rows of a bitmap are multiples of four bytes");
  const auto pixels = static_cast<uint32_t>(picture.loudness.size());
  std::string bytes = "BM";
  append(bytes, kHeaderBytes + pixels, 4);
  append(bytes, 0, 4);
  append(bytes, kHeaderBytes, 4);
  append(bytes, 40, 4);
  append(bytes, kPictureColumns, 4);
  append(bytes, kPictureRows, 4);
  append(bytes, 1, 2);
  append(bytes, 8, 2);
  append(bytes, 0, 4);
  append(bytes, pixels, 4);
  append(bytes, 2835, 4);
  append(bytes, 2835, 4);
  append(bytes, 256, 4);
  append(bytes, 256, 4);
  for (int level = 0; level < 256; ++level) {
    const std::array<uint8_t, 3> colour = heat(level);
    append(bytes, static_cast<uint32_t>(colour[2] | colour[1] << 8 | colour[0] << 16), 4);
  }
  bytes.append(picture.loudness.begin(), picture.loudness.end());
  return bytes;
}

// The stretch between the least and the greatest sample of every column.
std::string waveform(const SoundPicture& picture) {
  std::string there, back;
  const double middle = kWaveHeight / 2;
  for (size_t i = 0; i < picture.high.size(); ++i) {
    const double x = kLeft + kPlotWidth * static_cast<double>(i) / static_cast<double>(kPictureColumns);
    const double high = middle - middle * static_cast<double>(std::clamp(picture.high[i], -1.0f, 1.0f));
    const double low = middle - middle * static_cast<double>(std::clamp(picture.low[i], -1.0f, 1.0f));
    there += decimal(x, 1) + "," + decimal(high, 1) + " ";
    back = decimal(x, 1) + "," + decimal(low + 0.3, 1) + " " + back;
  }
  return "<polygon class=\"wave\" points=\"" + there + back + "\"/>";
}

}  // namespace

std::string sound_plot(const SoundPicture& picture) {
  const double bottom = kSpectrumTop + kSpectrumHeight;
  std::string svg =
      "<svg viewBox=\"0 0 " + decimal(kWidth, 0) + " " + decimal(bottom + 40, 0) +
      "\" role=\"img\" aria-label=\"waveform and spectrogram of " + escaped(picture.id) + "\">" +
      waveform(picture) + "<image x=\"" + decimal(kLeft, 0) + "\" y=\"" + decimal(kSpectrumTop, 0) +
      "\" width=\"" + decimal(kPlotWidth, 0) + "\" height=\"" + decimal(kSpectrumHeight, 0) +
      "\" preserveAspectRatio=\"none\" href=\"data:image/bmp;base64," + base64(bitmap(picture)) + "\"/>";
  const auto text = [](double x, double y, const char* anchor, const std::string& words) {
    return "<text x=\"" + decimal(x, 1) + "\" y=\"" + decimal(y, 1) + "\" text-anchor=\"" + anchor + "\">" +
           escaped(words) + "</text>";
  };
  for (double kilohertz = 0; kilohertz * 1e3 < picture.top_hertz; kilohertz += 2) {
    const double y = bottom - kSpectrumHeight * kilohertz * 1e3 / picture.top_hertz;
    svg += text(kLeft - 8, y + 4, "end", decimal(kilohertz, 0) + " kHz");
  }
  for (int i = 0; i <= 8; ++i) {
    const double share = i / 8.0;
    svg += text(kLeft + kPlotWidth * share, bottom + 18, i == 8 ? "end" : "middle",
                decimal(picture.seconds * share, 2) + " s");
  }
  return svg + "</svg>";
}

}  // namespace drama3::bench
