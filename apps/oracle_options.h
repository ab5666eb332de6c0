// drama3-oracle's command line as checked values.
#pragma once

#include <optional>
#include <string>

#include "apps/command_line.h"
#include "apps/option_values.h"

namespace drama3 {

struct OracleOptions {
  std::optional<Setting> model;
  std::string reference;
  std::string stage = "all";
  std::string device = "cpu";
  int threads = 0;                  // 0: the default
  std::optional<std::string> op;    // replay of this op alone
  std::optional<std::string> dump;  // folder for our own tensors
  std::optional<std::string> json;  // path or -
  bool quantize_activations = true;
  bool force_routing = false;
};

// Checks everything that needs no file; UsageError names the option and what it takes.
OracleOptions read_oracle_options(const CommandLine& command);

}  // namespace drama3
