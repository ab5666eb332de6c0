// The circumstances of a run, told once beside its figures.
#pragma once

#include <string>
#include <vector>

#include "apps/bench_share.h"

namespace drama3::bench {

// One circumstance.
struct Fact {
  std::string name;  // in words
  std::string key;   // in JSON
  std::string value;
  bool is_number = false;
};

// This machine, as it is now: call it before the measurement.
std::vector<Fact> machine_facts();

// The program, its command line, and what the ranks opened.
std::vector<Fact> run_facts(const std::string& command_line, const std::string& corpus,
                            const std::vector<RankRecord>& ranks);

// What is timed and how, one sentence a line.
std::vector<std::string> rules_of(const Plan& plan);

// The arguments in one line as a shell takes them.
std::string command_line_text(int argc, const char* const* argv);

// The driver of a device that the engine opened; empty for the CPU.
std::string driver_of(const EngineInfo& engine);

}  // namespace drama3::bench
