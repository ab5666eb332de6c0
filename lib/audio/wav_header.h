// The 44-byte header of a mono 16-bit PCM WAV file, for outputs that cannot be sought.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace drama3 {

inline constexpr size_t kWavHeaderBytes = 44;
// The size field of a stream whose length is not known.
inline constexpr uint32_t kWavUnknownSize = 0xFFFFFFFFu;

// Error that names flac and pcm when this many bytes of samples do not fit a WAV file (4 GiB with its
// header).
void check_wav_size(uint64_t data_bytes);

// The header for data_bytes bytes of samples; both sizes 0xFFFFFFFF for kWavUnknownSize.
std::array<std::byte, kWavHeaderBytes> wav_header(uint32_t data_bytes, uint32_t sample_rate);

}  // namespace drama3
