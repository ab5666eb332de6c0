// What drama3-oracle prints: the table of comparisons, and the JSON document.
#pragma once

#include <string>
#include <vector>

#include "apps/oracle_replay.h"

namespace drama3 {

// A finished run.
struct OracleReport {
  std::string model;
  std::string reference;
  std::string device;
  std::string device_name;
  int threads = 0;
  bool half_activations = false;
  bool half_codec = false;
  bool quantize_activations = true;
  bool force_routing = false;
  std::vector<Comparison> comparisons;
  std::vector<std::string> remarks;
};

int64_t failed_count(const OracleReport& report);
// The first comparison that fails, in the order in which the stages run; null when none does.
const Comparison* first_departure(const OracleReport& report);
// Markdown that also aligns in a terminal; the last line is "N passed, N failed".
std::string oracle_table(const OracleReport& report);
// The document of --json, schema drama3-oracle/1, ending in a line feed.
std::string json_oracle(const OracleReport& report);

}  // namespace drama3
