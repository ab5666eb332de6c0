// What a tool says on standard error: errors, warnings and notes, each on one line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drama3 {

enum class Verbosity { kQuiet, kNormal, kVerbose };

// Standard error of one tool. Failures to write there are nobody's concern.
class Messages {
 public:
  explicit Messages(std::string_view tool) : tool_(tool) {}

  void set_verbosity(Verbosity verbosity) { verbosity_ = verbosity; }
  Verbosity verbosity() const { return verbosity_; }

  void error(std::string_view sentence) const;
  // Printed unless quiet, and kept for the report.
  void warning(std::string_view sentence);
  // Printed unless quiet.
  void note(std::string_view sentence) const;
  // Printed only when verbose.
  void detail(std::string_view sentence) const;
  // A line without the tool's name, unless quiet.
  void line(std::string_view text) const;
  // What line() writes, for later.
  std::string spelled_line(std::string_view text) const;

  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::string tool_;
  Verbosity verbosity_ = Verbosity::kNormal;
  std::vector<std::string> warnings_;
};

// Writes text to standard error as it is.
void write_stderr(std::string_view text) noexcept;

// The text with control bytes shown as \xNN, so that it stays on one line.
std::string on_one_line(std::string_view text);

}  // namespace drama3
