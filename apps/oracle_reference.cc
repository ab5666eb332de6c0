// Reading of reference folders.
#include "apps/oracle_reference.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "lib/base/error.h"

namespace drama3 {
namespace {

// Values stored as From, at any alignment, as To.
template <typename From, typename To>
std::vector<To> values_of(const View& view) {
  std::vector<To> values(static_cast<size_t>(view.elements()));
  const auto* bytes = static_cast<const std::byte*>(view.data);
  for (size_t i = 0; i < values.size(); ++i) {
    From value;
    std::memcpy(&value, bytes + i * sizeof value, sizeof value);
    values[i] = static_cast<To>(value);
  }
  return values;
}

}  // namespace

FloatTensor ReferenceFile::floats(const std::string& tensor) {
  const View view = file_.tensor_named(tensor);
  if (view.type == DType::kF32) return {view.shape, values_of<float, float>(view)};
  if (view.type == DType::kF64) return {view.shape, values_of<double, float>(view)};
  fail(name_, ": tensor ", tensor, ": expected F32 or F64, got ", dtype_name(view.type));
}

IntTensor ReferenceFile::ints(const std::string& tensor) {
  const View view = file_.tensor_named(tensor);
  if (view.type == DType::kI32) return {view.shape, values_of<int32_t, int32_t>(view)};
  if (view.type == DType::kU8) return {view.shape, values_of<uint8_t, int32_t>(view)};
  fail(name_, ": tensor ", tensor, ": expected I32 or U8, got ", dtype_name(view.type));
}

std::vector<std::string> ReferenceFile::cases(const std::string& suffix) const {
  std::vector<std::string> found;
  for (const std::string& name : names()) {
    if (!name.ends_with(suffix)) continue;
    const std::string prefix = name.substr(0, name.size() - suffix.size());
    if (prefix.find('.') == std::string::npos) found.push_back(prefix);
  }
  std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return found;
}

FloatTensor ReferenceFile::stacked(const std::string& prefix, const std::string& suffix) {
  FloatTensor all;
  for (int i = 0; has(join(prefix, i, suffix)); ++i) append_rows(all, floats(join(prefix, i, suffix)));
  return all;
}

Reference::Reference(const std::string& path) : path_(path) {
  std::error_code problem;
  if (!std::filesystem::is_directory(path, problem)) {
    fail("--reference: expected a folder of reference data, got ",
         std::filesystem::exists(path, problem) ? "a file: " : "nothing at: ", path);
  }
}

bool Reference::has(const std::string& name) const {
  std::error_code problem;
  return std::filesystem::exists(path_ + "/" + name, problem);
}

ReferenceFile* Reference::file(const std::string& name) {
  auto at = files_.find(name);
  if (at == files_.end()) {
    if (!has(name)) return nullptr;
    at = files_.emplace(name, std::make_unique<ReferenceFile>(path_ + "/" + name, name)).first;
  }
  return at->second.get();
}

const JsonDocument* Reference::json(const std::string& name) {
  auto at = documents_.find(name);
  if (at == documents_.end()) {
    if (!has(name)) return nullptr;
    at = documents_.emplace(name, JsonDocument::read(path_ + "/" + name, kTokenizerLimits)).first;
  }
  return &at->second;
}

std::vector<int32_t> ids_in(const JsonValue& array) {
  std::vector<int32_t> ids;
  for (const JsonValue id : array.elements())
    ids.push_back(static_cast<int32_t>(id.as_unsigned(0, INT32_MAX)));
  return ids;
}

}  // namespace drama3
