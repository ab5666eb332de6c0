// Mono 16-bit audio into a WAV, FLAC or headerless file, a pipe or a device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "lib/audio/output_file.h"

namespace drama3 {

enum class AudioFormat { kWav, kFlac, kPcm };

// "wav", "flac", "pcm".
std::string_view format_name(AudioFormat format);

// The format of a path's extension: .wav .flac .pcm .raw in any case; nothing for others.
std::optional<AudioFormat> format_of_path(std::string_view path);

// Unless finish() returns, a replaced file is as it was. Every error names the output.
class AudioWriter {
 public:
  virtual ~AudioWriter() = default;
  virtual void write(std::span<const int16_t> samples) = 0;
  // Completes the headers and moves the file into its place; call once.
  virtual void finish() = 0;
};

// Opens the target. WAV on a pipe has sizes 0xFFFFFFFF; FLAC on a pipe states no length.
std::unique_ptr<AudioWriter> open_audio_writer(const OutputTarget& target, AudioFormat format,
                                               int sample_rate);

}  // namespace drama3
