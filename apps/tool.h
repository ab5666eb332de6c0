// What every tool does around its work: command line, --help, --version, errors to exit codes, signals.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "apps/command_line.h"
#include "apps/messages.h"

namespace drama3 {

// Exit codes of all tools.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitCutAtLimit = 3;
inline constexpr int kExitBarMissed = 4;

// The work of a tool: returns its exit code or throws.
using ToolBody = std::function<int(const CommandLine&, Messages&)>;

// Reads the command line, answers --help and --version, runs the body, and turns what it throws into one line
// on standard error (or the error document, where --json asks for it on standard output) and an exit code.
// Does not return when the reader of standard output has gone: the process dies by SIGPIPE.
int run_tool(Tool tool, int argc, char** argv, const ToolBody& body);

// Writes all bytes to standard output; ReaderGone or Error when that fails.
void write_stdout(std::string_view text);

// The schema's name in JSON documents: "drama3-say/1".
std::string schema_name(Tool tool);

}  // namespace drama3
