// drama3-say's command line as checked values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/command_line.h"
#include "apps/option_values.h"
#include "lib/audio/audio_writer.h"

namespace drama3 {

// Where the words come from.
enum class TextSource { kArgument, kFile, kStandardInput };

// Settings that are absent here come from the checkpoint, or are the built-in ones.
struct SayOptions {
  TextSource source = TextSource::kArgument;
  std::string text;  // the words, or the file's path
  bool dump_tokens = false;
  bool list_devices = false;
  bool verify = false;
  std::optional<std::string> output;  // path or -
  std::optional<AudioFormat> format;  // by flag
  std::optional<std::string> json;    // path or -
  std::optional<Setting> model;
  std::string device = "auto";
  int threads = 0;  // 0: the default
  std::optional<uint64_t> seed;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int32_t> top_k;
  int64_t max_frames = 0;  // 0: no cap
};

// Checks everything that needs no file; UsageError names the option and the range.
SayOptions read_say_options(const CommandLine& command, bool stdin_is_terminal);

// The format by flag, else by the output's extension, else WAV for outputs that are not regular files.
AudioFormat choose_format(const SayOptions& options, const OutputTarget& target);

}  // namespace drama3
