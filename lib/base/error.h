// The one error type of the project, and the joining of values into its sentence.
#pragma once

#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>

namespace drama3 {

// Bad input, file or device: a sentence "WHAT: expected X, got Y; REMEDY" that names file and item.
// Thrown in text, store, audio, engine and device code; caught only in main, where a stage adds its name,
// and where it passes from one thread to another.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& sentence) : std::runtime_error(sentence) {}
};

// The arguments joined as text, numbers in the C locale.
template <typename... Parts>
std::string join(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  if constexpr (sizeof...(parts) > 0) (out << ... << parts);
  return out.str();
}

// Throws Error with the joined arguments.
template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(join(parts...));
}

}  // namespace drama3
