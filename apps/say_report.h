// What drama3-say reports at its end: the closing line and the JSON document.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/audio/audio_writer.h"
#include "lib/audio/sample_conversion.h"
#include "lib/engine/engine.h"

namespace drama3 {

// Everything a finished run is described by.
struct SayReport {
  EngineInfo engine;
  SpeechResult speech;
  LevelMeter level;
  uint64_t seed = 0;
  std::string output;  // as the user named it
  AudioFormat format = AudioFormat::kWav;
  std::string sha256;  // of the samples
  std::vector<std::string> warnings;
};

// Length of the audio.
double audio_seconds(const SayReport& report);

// "wrote out.wav: 3.42 s audio in 0.51 s, RTF 0.149 (6.7x real time), first audio 0.041 s, ...".
std::string closing_line(const SayReport& report);

// The document of --json, schema drama3-say/1, ending in a line feed.
std::string json_report(const SayReport& report);

// The devices as an array of objects, ending in a line feed.
std::string json_devices(const std::vector<DeviceInfo>& devices);

// One line a device, name first.
std::string device_lines(const std::vector<DeviceInfo>& devices);

}  // namespace drama3
