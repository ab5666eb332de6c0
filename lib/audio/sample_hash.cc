// SHA-256 of samples by OpenSSL's libcrypto.
#include "lib/audio/sample_hash.h"

#include <openssl/evp.h>

#include <array>
#include <bit>

#include "lib/base/error.h"

namespace drama3 {

static_assert(std::endian::native == std::endian::little,
              "samples are hashed and written as they lie in memory");

struct SampleHash::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

SampleHash::SampleHash() : state_(std::make_unique<State>()) {
  if (!state_->context || EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) != 1) {
    fail("SHA-256: expected libcrypto to start a hash, got a failure");
  }
}

SampleHash::~SampleHash() = default;

void SampleHash::update(std::span<const int16_t> samples) {
  if (EVP_DigestUpdate(state_->context.get(), samples.data(), samples.size_bytes()) != 1) {
    fail("SHA-256: expected libcrypto to take ", samples.size_bytes(), " bytes, got a failure");
  }
}

std::string SampleHash::finish() {
  std::array<unsigned char, 32> digest{};
  unsigned int bytes = 0;
  if (EVP_DigestFinal_ex(state_->context.get(), digest.data(), &bytes) != 1 || bytes != digest.size()) {
    fail("SHA-256: expected libcrypto to give 32 bytes, got a failure");
  }
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : digest) text += {kHex[byte >> 4], kHex[byte & 15]};
  return text;
}

}  // namespace drama3
