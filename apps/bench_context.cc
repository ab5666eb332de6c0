// Looking up the machine and the build.
#include "apps/bench_context.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

#include "apps/version_text.h"
#include "drama3/build_info.h"
#include "lib/base/error.h"

namespace drama3::bench {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line.empty() ? "not told" : line;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "not told";
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "not told";
}

int allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
}

// Three figures of one, five and fifteen minutes.
std::string load_average() {
  const std::string line = first_line("/proc/loadavg");
  size_t end = 0;
  for (int i = 0; i < 3 && end != std::string::npos; ++i) end = line.find(' ', end + 1);
  return line.substr(0, end);
}

std::string device_words(const RankRecord& rank) {
  const EngineInfo& engine = rank.engine;
  std::string words = engine.device;
  if (!engine.device_name.empty()) words += " (" + engine.device_name + ")";
  if (!engine.cpu_path.empty()) words += " " + engine.cpu_path;
  return words;
}

}  // namespace

std::vector<Fact> machine_facts() {
  return {
      {"date", "date", utc_now()},
      {"host", "host", host_name()},
      {"CPU", "cpu_model", cpu_model()},
      {"cores of this process", "cores", std::to_string(allowed_cores()), true},
      {"scaling governor", "scaling_governor",
       first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")},
      {"load average before", "load_average", load_average()},
  };
}

std::vector<Fact> run_facts(const std::string& command_line, const std::string& corpus,
                            const std::vector<RankRecord>& ranks) {
  const RankRecord& first = ranks.front();
  std::string devices;
  for (const RankRecord& rank : ranks) devices += (devices.empty() ? "" : ", ") + device_words(rank);
  const std::string driver = first.driver.empty() ? "none" : first.driver;
  return {
      {"device", "device", devices},
      {"threads", "threads", std::to_string(first.engine.threads), true},
      {"processes", "processes", std::to_string(ranks.size()), true},
      {"driver", "driver", driver},
      {"toolkit", "cuda_toolkit", DRAMA3_CUDA_TEXT},
      {"model", "model", first.engine.model},
      {"checkpoint", "checkpoint", first.checkpoint_hash},
      {"checkpoint bytes", "checkpoint_bytes", std::to_string(first.engine.checkpoint_bytes), true},
      {"load seconds", "load_seconds", join(first.engine.load_seconds), true},
      {"corpus", "corpus", corpus},
      {"version", "version", version_number()},
      {"commit", "commit", DRAMA3_COMMIT},
      {"compiler", "compiler", DRAMA3_COMPILER},
      {"build type", "build_type", DRAMA3_BUILD_TYPE},
      {"command line", "command_line", command_line},
  };
}

std::vector<std::string> rules_of(const Plan& plan) {
  const std::string warmup = plan.warmup == 0 ? "no warm-up: the first requests are cold"
                                              : join("warm-up: ", plan.warmup,
                                                     " untimed request(s) a process, the first of its share");
  return {
      "compute seconds: wall time of one request, text to last sample, without loading, hashing or writing",
      "RTF: compute seconds / audio seconds; x real time: its inverse; below 1 is faster than real time",
      "first audio: from the call to the first event (one frame); in milliseconds",
      "stages: prompt = its rows; backbone = one row a frame; tower = ten codes; sampler = semantic draw; "
      "codec = codes to samples",
      warmup,
      join("passes: ", plan.passes, ", the whole corpus one after another, one request at a time"),
      "± standard deviation over the passes (n - 1); min … max over the passes; p95 by nearest rank, from "
      "20 samples on",
      "sha256: of the 16-bit samples, without a header; figures whose gate failed are INVALID",
  };
}

std::string command_line_text(int argc, const char* const* argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) {
    std::string word = argv[i];
    if (i == 0) word = word.substr(word.rfind('/') + 1);
    const bool plain =
        !word.empty() && word.find_first_of(" '\"\\$*?[]{}();&|<>~`!#\n\t") == std::string::npos;
    text += (i == 0 ? "" : " ") + (plain ? word : "'" + word + "'");
  }
  return text;
}

std::string driver_of(const EngineInfo& engine) {
  if (engine.device == "cpu") return "";
  for (const DeviceInfo& device : list_devices()) {
    if (device.id == engine.device) return device.driver;
  }
  return "";
}

}  // namespace drama3::bench
