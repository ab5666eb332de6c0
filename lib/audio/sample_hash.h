// SHA-256 of 16-bit samples as little-endian bytes: the identity of a piece of audio in any container.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace drama3 {

// A running hash.
class SampleHash {
 public:
  SampleHash();
  ~SampleHash();
  SampleHash(const SampleHash&) = delete;
  SampleHash& operator=(const SampleHash&) = delete;

  void update(std::span<const int16_t> samples);
  // The hash of everything so far as 64 hexadecimal digits; call once.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace drama3
