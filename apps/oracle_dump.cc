// Collecting and writing of our own tensors.
#include "apps/oracle_dump.h"

#include <filesystem>

#include "lib/audio/output_file.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/store/safetensors_writer.h"

namespace drama3 {
namespace {

constexpr uint64_t kLargestDocument = 64 << 20;

}  // namespace

void Dump::add(const std::string& file, const std::string& name, FloatTensor tensor) {
  if (enabled_) files_[file].floats[name] = std::move(tensor);
}

void Dump::add(const std::string& file, const std::string& name, IntTensor tensor) {
  if (enabled_) files_[file].ints[name] = std::move(tensor);
}

void Dump::add_bytes(const std::string& file, const std::string& name, IntTensor tensor) {
  if (enabled_) files_[file].bytes[name] = {tensor.shape, {tensor.values.begin(), tensor.values.end()}};
}

void Dump::write(const std::string& folder, const std::string& reference) const {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) fail("--dump ", folder, ": expected a folder to write into, got: ", problem.message());
  for (const auto& [name, file] : files_) {
    std::vector<SafetensorsTensor> tensors;
    for (const auto& [tensor, values] : file.floats) {
      tensors.push_back({tensor, DType::kF32, values.shape, std::as_bytes(std::span(values.values))});
    }
    for (const auto& [tensor, values] : file.ints) {
      tensors.push_back({tensor, DType::kI32, values.shape, std::as_bytes(std::span(values.values))});
    }
    for (const auto& [tensor, values] : file.bytes) {
      tensors.push_back({tensor, DType::kU8, values.shape, std::as_bytes(std::span(values.values))});
    }
    OutputFile out(check_output(folder + "/" + name));
    out.write(safetensors_header(tensors));
    for (const SafetensorsTensor& tensor : tensors) out.write(tensor.bytes);
    out.commit();
  }
  for (const std::string name : {"tokenizer.json", "greedy.json", "reference.json"}) {
    if (!std::filesystem::is_regular_file(reference + "/" + name, problem)) continue;
    OutputFile out(check_output(folder + "/" + name));
    out.write(read_file(reference + "/" + name, kLargestDocument));
    out.commit();
  }
}

}  // namespace drama3
