// A split pattern of a tokenizer, compiled by PCRE2 with Unicode properties and under limits.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace drama3 {

// Thread-safe after construction.
class SplitPattern {
 public:
  // Error naming file, pattern and position when the pattern does not compile.
  SplitPattern(const std::string& pattern, const std::string& file);
  ~SplitPattern();
  SplitPattern(SplitPattern&&) noexcept;
  SplitPattern& operator=(SplitPattern&&) noexcept;

  // Calls take(piece) for each match and for each stretch between matches, in order: the pieces joined are
  // the text, which is valid UTF-8. Error when matching exceeds the match or memory limit.
  void split(std::string_view text, const std::function<void(std::string_view)>& take) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace drama3
