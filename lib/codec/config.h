// What config.json says about the codec; all other geometry comes from the shapes of its tensors.
#pragma once

#include <cstdint>

namespace drama3::codec {

inline constexpr int kSampleRate = 44100;  // samples a second

struct Config {
  int64_t window_size = 128;          // frames that a row of post_module and pre_module sees
  int64_t head_dim = 64;              // width of their heads
  int64_t encoder_window_size = 512;  // columns that a row of the encoder's transformer sees
};

}  // namespace drama3::codec
