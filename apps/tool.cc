// The frame around every tool's work.
#include "apps/tool.h"

#include <signal.h>
#include <unistd.h>

#include <exception>
#include <new>
#include <nlohmann/json.hpp>

#include "apps/option_pages.h"
#include "apps/version_text.h"
#include "lib/audio/output_file.h"

namespace drama3 {
namespace {

constexpr const char* kNoMemory = "memory: expected more of it, got none; close other programs";

// Dies by the signal's default action, as if it had never been handled.
[[noreturn]] void die_by(int signal_number) {
  ::signal(signal_number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal_number);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(signal_number);
  ::_exit(128 + signal_number);
}

extern "C" void clean_up_and_die(int signal_number) {
  remove_unfinished_outputs();
  die_by(signal_number);
}

// A broken pipe and a file size limit become errors of write; SIGINT, SIGTERM and SIGHUP clean up first,
// unless the parent had them ignored.
void set_signals() {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, nullptr);
  ::sigaction(SIGXFSZ, &ignore, nullptr);
  for (int signal_number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(signal_number, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = clean_up_and_die;
    ::sigaction(signal_number, &action, nullptr);
  }
}

// Whether --json asks for a document on standard output, read leniently because the command line may be
// wrong.
bool wants_json_on_stdout(Tool tool, std::span<const char* const> arguments) {
  bool json = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const std::string_view next = i + 1 < arguments.size() ? arguments[i + 1] : "";
    if (argument == "--") break;
    if (argument == "--json=-") json = true;
    if (argument == "--json" && (tool == Tool::kSay || next == "-")) json = true;
    if ((argument == "-o" || argument == "--output") && next == "-") return false;
    if (argument == "--output=-") return false;
  }
  return json;
}

int answer_failure(Tool tool, const Messages& messages, bool json, const std::string& sentence,
                   int exit_code) {
  messages.error(sentence);
  if (!json) return exit_code;
  nlohmann::ordered_json document;
  document["schema"] = schema_name(tool);
  document["error"] = {{"message", sentence}, {"exit_code", exit_code}};
  try {
    write_stdout(document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } catch (const ReaderGone&) {
    die_by(SIGPIPE);
  } catch (const Error& error) {
    messages.error(error.what());
  }
  return exit_code;
}

int run_body(Tool tool, std::span<const char* const> arguments, Messages& messages, const ToolBody& body) {
  const CommandLine command(tool, arguments);
  if (command.has("help")) {
    write_stdout(help_page(tool));
    return kExitDone;
  }
  if (command.has("version")) {
    write_stdout(version_text(tool));
    return kExitDone;
  }
  if (command.has("quiet") && command.has("verbose")) {
    usage_error("--quiet: expected not together with --verbose, got both; leave one out");
  }
  if (command.has("quiet")) messages.set_verbosity(Verbosity::kQuiet);
  if (command.has("verbose")) messages.set_verbosity(Verbosity::kVerbose);
  return body(command, messages);
}

// Runs the body; an error that it throws is answered here, an allocation that fails on the way is not.
int run_and_answer(Tool tool, std::span<const char* const> arguments, const ToolBody& body) {
  const std::string name(page_of(tool).name);
  Messages messages(name);
  const bool json = wants_json_on_stdout(tool, arguments);
  try {
    return run_body(tool, arguments, messages, body);
  } catch (const ReaderGone&) {
    remove_unfinished_outputs();
    die_by(SIGPIPE);
  } catch (const UsageError& error) {
    return answer_failure(tool, messages, json, error.what() + ("; see " + name + " --help"), kExitUsage);
  } catch (const std::bad_alloc&) {
    return answer_failure(tool, messages, json, kNoMemory, kExitFailed);
  } catch (const std::exception& error) {
    return answer_failure(tool, messages, json, error.what(), kExitFailed);
  }
}

}  // namespace

int run_tool(Tool tool, int argc, char** argv, const ToolBody& body) {
  set_signals();
  const size_t count = argc > 0 ? static_cast<size_t>(argc) - 1 : 0;
  try {
    return run_and_answer(tool, {argv + (argc > 0 ? 1 : 0), count}, body);
  } catch (const std::bad_alloc&) {  // not even an answer could be allocated: pieces that need no memory
    for (std::string_view part : {page_of(tool).name, std::string_view(": error: "),
                                  std::string_view(kNoMemory), std::string_view("\n")}) {
      write_stderr(part);
    }
    return kExitFailed;
  }
}

void write_stdout(std::string_view text) {
  OutputFile output(check_output("-"));
  output.write(text);
}

std::string schema_name(Tool tool) { return std::string(page_of(tool).name) + "/1"; }

}  // namespace drama3
