// drama3-say under failing system calls and allocations: a clean error, no new file, the old output intact.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "apps/say.h"
#include "lib/base/system_calls.h"
#include "tests/audio/scratch_folder.h"
#include "tests/store/failing_allocation.h"

namespace drama3 {
namespace {

constexpr const char* kModel = DRAMA3_TEST_DATA "/golden/tiny";

// Whether faults last: one use fails, or all from it on. Slow builds try the first kind only.
#ifdef __SANITIZE_ADDRESS__
const std::vector<bool> kLasting = {false};
#else
const std::vector<bool> kLasting = {false, true};
#endif

// Which use of operator new fails.
struct AllocationFault {
  uint64_t nth = 0;  // 0: none
  bool from_there_on = false;
};

// What drama3-say said and did.
struct SayRun {
  int exit_code = 0;
  uint64_t uses = 0;  // of the system call asked about
  std::string complaint;
};

// Runs drama3-say on two frames, with more arguments, its standard error in a file.
SayRun run_say(const ScratchFolder& folder, const ScratchFolder& log, const std::vector<std::string>& more,
               SystemCall call = SystemCall::kOpen, const AllocationFault& fault = {}) {
  const std::string output = folder / "out.wav";
  const std::string heard = log / "stderr";
  std::vector<std::string> words{"drama3-say", "Hi.", "-o", output,         "-m", kModel,
                                 "--seed=1",   "-n",  "2",  "--device=cpu", "-t", "1"};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  const int kept = ::dup(STDERR_FILENO);
  const int file = ::open(heard.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  ::dup2(file, STDERR_FILENO);
  SayRun run;
  testing::fail_allocation(fault.nth, fault.from_there_on);
  run.exit_code = say_main(static_cast<int>(arguments.size()), arguments.data());
  run.uses = system_call_count(call);
  clear_faults();
  testing::fail_allocation(0, false);
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  ::close(file);
  run.complaint = bytes_of(heard);
  return run;
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += ::fcntl(fd, F_GETFD) != -1 ? 1 : 0;
  return count;
}

// Judges one run with a fault, which it may also have survived; returns whether it failed.
bool judge(const SayRun& run) {
  const bool failed = run.exit_code != 3;  // two frames are a cut output
  if (failed) {
    CHECK(run.exit_code == 1);
    CHECK(run.complaint.find("drama3-say: error: ") != std::string::npos);
  }
  return failed;
}

// Loading allocates tens of thousands of times in the same loops: the first and last 60 one by one, a sample
// of those between.
uint64_t next_allocation(uint64_t nth, uint64_t total) {
  const uint64_t last_ones = total > 60 ? total - 60 : 0;
  if (nth < 60 || nth >= last_ones) return nth + 1;
  return std::min(nth + total / 97 + 1, last_ones);
}

}  // namespace

TEST_CASE("whatever system call fails, say fails cleanly") {
  const ScratchFolder folder, log;
  const std::vector<std::string> report = {"--json=" + (folder / "report.json")};
  run_say(folder, log, report);
  const std::string whole = bytes_of(folder / "out.wav");
  REQUIRE(whole.size() == 44 + 2 * 2 * 2048);
  const int descriptors = open_descriptors();
  for (const SystemCall call :
       {SystemCall::kOpen, SystemCall::kRead, SystemCall::kStat, SystemCall::kMap, SystemCall::kWrite,
        SystemCall::kTruncate, SystemCall::kSync, SystemCall::kClose, SystemCall::kRename}) {
    for (const bool from_there_on : kLasting) {
      const uint64_t uses = run_say(folder, log, report, call).uses;
      REQUIRE(uses < 400);
      for (uint64_t nth = 1; nth <= uses; ++nth) {
        put_file(folder / "out.wav", "old");
        put_file(folder / "report.json", "old");
        set_fault({.call = call, .nth = nth, .error_number = EIO, .from_there_on = from_there_on});
        const SayRun run = run_say(folder, log, report);
        INFO("call ", static_cast<int>(call), " number ", nth, " of ", uses, ", exit ", run.exit_code, ": ",
             run.complaint);
        const bool failed = judge(run);
        // Audio and report are both new or both old, but when the very last move, the report's, was refused.
        const bool audio_is_old = failed && !(call == SystemCall::kRename && nth == uses);
        CHECK(bytes_of(folder / "out.wav") == (audio_is_old ? "old" : whole));
        CHECK((bytes_of(folder / "report.json") == "old") == failed);
        CHECK(folder.entries() == 2);
        CHECK(open_descriptors() == descriptors);
      }
    }
  }
}

// Without a report: the library that spells it allocates where it destroys a document, and so may abort.
TEST_CASE("whatever allocation fails, say fails cleanly") {
  const ScratchFolder folder, log;
  run_say(folder, log, {});
  const std::string whole = bytes_of(folder / "out.wav");
  run_say(folder, log, {}, SystemCall::kOpen, {.nth = UINT64_MAX});
  const uint64_t total = testing::allocations_seen();
  MESSAGE("a run allocates ", total, " times");
  for (const bool from_there_on : kLasting) {
    for (uint64_t nth = 1; nth <= total; nth = next_allocation(nth, total)) {
      put_file(folder / "out.wav", "old");
      const SayRun run =
          run_say(folder, log, {}, SystemCall::kOpen, {.nth = nth, .from_there_on = from_there_on});
      INFO("allocation ", nth, " of ", total, ", exit ", run.exit_code, ": ", run.complaint);
      CHECK(bytes_of(folder / "out.wav") == (judge(run) ? "old" : whole));
      CHECK(folder.entries() == 1);
    }
  }
}

}  // namespace drama3
