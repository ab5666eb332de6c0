// SHA-256 gives the published digests, in one piece and in several.
#include "lib/base/sha256.h"

#include <doctest/doctest.h>

#include <string_view>

using namespace drama3;

namespace {
std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
}  // namespace

TEST_CASE("published digests") {
  CHECK(sha256_hex({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex(bytes_of("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 hash;
  hash.update(bytes_of("a"));
  hash.update(bytes_of("bc"));
  CHECK(hash.hex() == sha256_hex(bytes_of("abc")));
}
