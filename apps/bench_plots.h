// The drawings of the HTML report, each one inline SVG element.
#pragma once

#include <string>

#include "apps/bench_report.h"

namespace drama3::bench {

// Text with the characters that HTML gives a meaning replaced.
std::string escaped(const std::string& text);

// RTF of every request against the length of its audio, one colour a category.
std::string rtf_plot(const Report& report);

// For each item, milliseconds of each stage per second of audio.
std::string stage_plot(const Report& report);

// Time to first audio of every request, one line a category, with the median and 95th percentile.
std::string first_audio_plot(const Report& report);

// Waveform above spectrogram.
std::string sound_plot(const SoundPicture& picture);

}  // namespace drama3::bench
