// Philox4x32-10 counter-based random words (Salmon et al., SC 2011) and the uniform every draw uses.
#pragma once

#include <array>
#include <cstdint>

namespace drama3 {

// The four output words of Philox4x32 with ten rounds; host and device code share this definition.
#ifdef __CUDACC__
__host__ __device__
#endif
    inline std::array<uint32_t, 4>
    philox4x32_10(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(product0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

// The uniform in [0, 1) of one draw: 24 bits of the first word at counter (frame, codebook, 0, 0).
#ifdef __CUDACC__
__host__ __device__
#endif
    inline float
    draw_uniform(uint64_t seed, uint32_t frame, uint32_t codebook) {
  const std::array<uint32_t, 4> counter{frame, codebook, 0, 0};
  const std::array<uint32_t, 2> key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  return static_cast<float>(philox4x32_10(counter, key)[0] >> 8) * 0x1p-24f;
}

}  // namespace drama3
