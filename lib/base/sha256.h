// SHA-256 of byte sequences, by libcrypto.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace drama3 {

// Hashes what update() is given, in order. Error when libcrypto fails (out of memory).
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void update(std::span<const std::byte> bytes);
  // The digest as 64 hexadecimal digits; ends the hash.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The digest of one sequence as 64 hexadecimal digits.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace drama3
