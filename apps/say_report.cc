// The closing line and the JSON documents of drama3-say.
#include "apps/say_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/progress.h"
#include "apps/tool.h"
#include "apps/version_text.h"

namespace drama3 {
namespace {

using Json = nlohmann::ordered_json;

// A number, or null where there is none: JSON has no NaN.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

std::string dumped(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

double real_time_factor(const SayReport& report) {
  return report.speech.compute_seconds / audio_seconds(report);
}

Json chunks(const SayReport& report) {
  Json list = Json::array();
  for (const PieceResult& piece : report.speech.pieces) {
    list.push_back(
        {{"text", piece.text}, {"frames", piece.frames}, {"finish_reason", finish_name(piece.finish)}});
  }
  return list;
}

}  // namespace

double audio_seconds(const SayReport& report) {
  return static_cast<double>(report.speech.samples) / static_cast<double>(report.engine.sample_rate);
}

std::string closing_line(const SayReport& report) {
  const double factor = real_time_factor(report);
  const std::string threads = report.engine.threads > 0 ? " x" + std::to_string(report.engine.threads) : "";
  return "wrote " + report.output + ": " + decimal(audio_seconds(report), 2) + " s audio in " +
         decimal(report.speech.compute_seconds, 2) + " s, RTF " + decimal(factor, 3) + " (" +
         decimal(1 / factor, 1) + "x real time), first audio " +
         decimal(report.speech.first_audio_seconds, 3) + " s, load " +
         decimal(report.engine.load_seconds, 2) + " s, seed " + std::to_string(report.seed) + ", " +
         report.engine.device + threads;
}

std::string json_report(const SayReport& report) {
  int64_t tokens = 0;
  for (const PieceResult& piece : report.speech.pieces) tokens += piece.text_tokens;
  Json document;
  document["schema"] = schema_name(Tool::kSay);
  document["version"] = version_number();
  document["text_tokens"] = tokens;
  document["chunks"] = chunks(report);
  document["frames"] = report.speech.frames;
  document["samples"] = report.speech.samples;
  document["sample_rate"] = report.engine.sample_rate;
  document["seconds"] = finite(audio_seconds(report));
  document["seed"] = report.seed;
  document["finish_reason"] = finish_name(report.speech.finish);
  document["warnings"] = report.warnings;
  document["remarks"] = report.speech.remarks;
  document["output"] = report.output;
  document["format"] = format_name(report.format);
  document["sha256"] = report.sha256;
  document["peak"] = finite(report.level.peak);
  document["clipped_samples"] = report.level.clipped;
  document["model"] = report.engine.model;
  document["device"] = report.engine.device;
  document["threads"] = report.engine.threads;
  document["load_seconds"] = finite(report.engine.load_seconds);
  document["first_audio_seconds"] = finite(report.speech.first_audio_seconds);
  document["compute_seconds"] = finite(report.speech.compute_seconds);
  document["rtf"] = finite(real_time_factor(report));
  return dumped(document);
}

std::string json_devices(const std::vector<DeviceInfo>& devices) {
  Json list = Json::array();
  for (const DeviceInfo& device : devices) {
    Json entry{{"id", device.id}, {"name", device.name}};
    if (device.id != "cpu") {
      entry["compute_capability"] = device.compute_capability;
      entry["free_bytes"] = device.free_bytes;
      entry["total_bytes"] = device.total_bytes;
      entry["driver"] = device.driver;
      entry["pci_id"] = device.pci_id;
      entry["uuid"] = device.uuid;
    }
    list.push_back(entry);
  }
  return dumped(list);
}

std::string device_lines(const std::vector<DeviceInfo>& devices) {
  static constexpr double kGibibyte = 1073741824.0;
  std::string lines;
  for (const DeviceInfo& device : devices) {
    lines += device.id;
    if (!device.name.empty()) lines += "  " + device.name;
    if (device.id != "cpu") {
      lines += "  cc " + device.compute_capability + "  " +
               decimal(static_cast<double>(device.free_bytes) / kGibibyte, 1) + "/" +
               decimal(static_cast<double>(device.total_bytes) / kGibibyte, 1) + " GiB free  driver " +
               device.driver + "  " + device.pci_id + "  " + device.uuid;
    }
    lines += "\n";
  }
  return lines;
}

}  // namespace drama3
