// Settings from flags and environment: whole, locale-free numbers with their ranges in the message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apps/command_line.h"

namespace drama3 {

// A value and where it stands: "--threads" or "DRAMA3_THREADS".
struct Setting {
  std::string origin;
  std::string text;
};

// The option's value, else that of its environment variable (empty counts as unset), else nothing.
std::optional<Setting> setting(const CommandLine& command, std::string_view name);

// The bounds of a number.
struct WholeRange {
  uint64_t least = 0;
  uint64_t most = UINT64_MAX;
  std::string_view remedy = {};  // end of the message, empty for none
};

struct RealRange {
  double least = 0;
  bool least_included = true;
  double most = 0;
  std::string_view words = {};  // the range in words
};

// Plain decimal digits within the range, or UsageError with origin and range.
uint64_t parse_whole(const Setting& setting, const WholeRange& range);

// A finite decimal (sign, digits, point, exponent) within the range, or UsageError with origin and range.
double parse_real(const Setting& setting, const RealRange& range);

// One of the blank-separated choices, or UsageError that lists them.
std::string parse_choice(const Setting& setting, std::string_view choices);

// The device in the engine's words: auto, ref, cpu, cuda or cuda:N, from those, gpu (cuda) or N (cuda:N).
std::string parse_device(const Setting& setting, bool with_ref);

}  // namespace drama3
