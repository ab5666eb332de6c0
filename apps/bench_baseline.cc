// Reading, naming and writing baselines.
#include "apps/bench_baseline.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/audio/output_file.h"
#include "lib/base/error.h"
#include "lib/store/json_reader.h"

namespace drama3::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSchema = "drama3-baseline/1";
constexpr JsonLimits kBaselineLimits{.bytes = 4 << 20, .values = 1 << 16};

}  // namespace

std::string backend_class(const std::string& device) { return device.substr(0, device.find(':')); }

std::string baseline_path(const std::string& corpus, const std::string& backend,
                          const std::string& checkpoint) {
  const fs::path folder = fs::path(corpus).parent_path() / "baselines";
  return (folder / (backend + "-" + checkpoint.substr(0, 16) + ".json")).string();
}

std::optional<Baseline> read_baseline(const std::string& path) {
  std::error_code problem;
  if (!fs::exists(path, problem)) return std::nullopt;
  const JsonDocument document = JsonDocument::read(path, kBaselineLimits);
  const JsonValue root = document.root();
  if (root.at("schema").as_text() != kSchema) root.at("schema").refuse(std::string(kSchema));
  Baseline baseline{.path = path};
  baseline.backend = root.at("backend").as_text();
  baseline.checkpoint = root.at("checkpoint").as_text();
  for (const JsonValue& value : root.at("items").members()) {
    BaselineItem& item = baseline.items[std::string(value.key())];
    item.request = value.at("request").as_text();
    item.sha256 = value.at("sha256").as_text();
    item.frames = static_cast<int64_t>(value.at("frames").as_unsigned(0, INT32_MAX));
    item.finish_reason = value.at("finish_reason").as_text();
  }
  return baseline;
}

void write_baseline(Baseline baseline, const std::vector<CorpusItem>& items,
                    const std::vector<RequestRecord>& requests) {
  for (const RequestRecord& request : requests) {
    if (request.pass != 1) continue;
    const CorpusItem& item = items[request.item];
    baseline.items[item.id] = {.request = request_digest(item),
                               .sha256 = request.sha256,
                               .frames = request.frames,
                               .finish_reason = finish_name(request.finish)};
  }
  nlohmann::ordered_json document;
  document["schema"] = kSchema;
  document["backend"] = baseline.backend;
  document["checkpoint"] = baseline.checkpoint;
  document["items"] = nlohmann::ordered_json::object();
  for (const auto& [id, item] : baseline.items) {
    document["items"][id] = {{"request", item.request},
                             {"sha256", item.sha256},
                             {"frames", item.frames},
                             {"finish_reason", item.finish_reason}};
  }
  const fs::path folder = fs::path(baseline.path).parent_path();
  std::error_code problem;
  if (!folder.empty()) fs::create_directories(folder, problem);
  OutputFile file(check_output(baseline.path));
  file.write(document.dump(1) + "\n");
  file.commit();
}

}  // namespace drama3::bench
