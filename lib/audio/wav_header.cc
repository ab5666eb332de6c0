// The 44-byte WAV header.
#include "lib/audio/wav_header.h"

#include <cstring>

#include "lib/base/error.h"

namespace drama3 {

void check_wav_size(uint64_t data_bytes) {
  static constexpr uint64_t kMost = 0xFFFFFFFFu - kWavHeaderBytes;
  if (data_bytes > kMost) {
    fail("WAV: expected at most ", kMost,
         " bytes of samples (4 GiB), got more; use --format flac or --format pcm");
  }
}

std::array<std::byte, kWavHeaderBytes> wav_header(uint32_t data_bytes, uint32_t sample_rate) {
  std::array<std::byte, kWavHeaderBytes> header{};
  const auto put = [&](size_t at, const auto& value) {
    std::memcpy(header.data() + at, &value, sizeof value);
  };
  const bool unknown = data_bytes == kWavUnknownSize;
  std::memcpy(header.data(), "RIFF", 4);
  put(4, unknown ? kWavUnknownSize : static_cast<uint32_t>(data_bytes + kWavHeaderBytes - 8));
  std::memcpy(header.data() + 8, "WAVEfmt ", 8);
  put(16, uint32_t{16});  // bytes of the format chunk
  put(20, uint16_t{1});   // PCM
  put(22, uint16_t{1});   // channels
  put(24, sample_rate);
  put(28, uint32_t{sample_rate * 2});  // bytes a second
  put(32, uint16_t{2});                // bytes a sample
  put(34, uint16_t{16});               // bits a sample
  std::memcpy(header.data() + 36, "data", 4);
  put(40, data_bytes);
  return header;
}

}  // namespace drama3
