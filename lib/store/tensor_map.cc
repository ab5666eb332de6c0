// Look-up, checks and book-keeping of stored tensors.
#include "lib/store/tensor_map.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lib/base/error.h"
#include "lib/base/scalars.h"

namespace drama3 {
namespace {

constexpr int64_t kScaleBlock = 128;  // rows and columns that share one scale

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += separator;
    out += part;
  }
  return out;
}

std::string type_names(const std::vector<DType>& types) {
  std::vector<std::string> names;
  for (const DType type : types) names.emplace_back(dtype_name(type));
  return joined(names, " or ");
}

// Element i of unaligned floating-point data, as float; 0 for integers.
float element(const std::byte* data, DType type, int64_t i) {
  uint16_t half = 0;
  float single = 0;
  double wide = 0;
  switch (type) {
    case DType::kF64:
      std::memcpy(&wide, data + i * 8, 8);
      return static_cast<float>(wide);
    case DType::kF32:
      std::memcpy(&single, data + i * 4, 4);
      return single;
    case DType::kF16:
      std::memcpy(&half, data + i * 2, 2);
      return f16_to_float(half);
    case DType::kBF16:
      std::memcpy(&half, data + i * 2, 2);
      return bf16_to_float(half);
    case DType::kF8E4M3:
      return e4m3_to_float(static_cast<uint8_t>(data[i]));
    default:
      return 0;
  }
}

// The index of the first NaN or infinity, or nothing.
std::optional<int64_t> first_non_finite(const View& view) {
  const auto* data = static_cast<const std::byte*>(view.data);
  for (int64_t i = 0; i < view.elements(); ++i) {
    if (!std::isfinite(element(data, view.type, i))) return i;
  }
  return std::nullopt;
}

}  // namespace

bool IgnoredNames::covers(std::string_view name) const {
  const auto begins = [&](const std::string& prefix) { return name.starts_with(prefix); };
  const auto ends = [&](const std::string& suffix) { return name.ends_with(suffix); };
  return std::any_of(prefixes.begin(), prefixes.end(), begins) ||
         std::any_of(suffixes.begin(), suffixes.end(), ends);
}

uint32_t TensorMap::add_file(const std::string& path) {
  files_.push_back(path);
  return static_cast<uint32_t>(files_.size() - 1);
}

void TensorMap::add(StoredTensor tensor) {
  const auto [at, is_new] = index_.try_emplace(canonical(tensor.name), tensors_.size());
  if (!is_new) {
    fail(label(tensor), ": expected each name once, got it in ", files_[tensors_[at->second].file], " too",
         tensors_[at->second].name == tensor.name ? "" : " as " + tensors_[at->second].name);
  }
  tensors_.push_back(std::move(tensor));
}

std::string TensorMap::label(const StoredTensor& tensor) const {
  return join(files_[tensor.file], ": tensor ", tensor.name);
}

std::string TensorMap::canonical(std::string_view name) const {
  if (prefix_.from.empty() || !name.starts_with(prefix_.from)) return std::string(name);
  return prefix_.to + std::string(name.substr(prefix_.from.size()));
}

std::optional<size_t> TensorMap::lookup(const std::vector<std::string>& spellings) const {
  std::optional<size_t> found;
  for (const std::string& spelling : spellings) {
    const auto at = index_.find(canonical(spelling));
    if (at == index_.end() || found == at->second) continue;
    if (found) {
      fail(label(tensors_[*found]), ": expected one spelling of this tensor, got ", tensors_[at->second].name,
           " too");
    }
    found = at->second;
  }
  return found;
}

View TensorMap::use(size_t index, const TensorRequest& request) {
  StoredTensor& stored = tensors_[index];
  const bool type_fits =
      std::find(request.types.begin(), request.types.end(), stored.type) != request.types.end();
  if (!type_fits || !(stored.shape == request.shape)) {
    fail(label(stored), ": expected ", type_names(request.types), " ", request.shape.text(), ", got ",
         dtype_name(stored.type), " ", stored.shape.text());
  }
  const std::byte* const data = load(index);
  stored.used = true;
  return View(const_cast<std::byte*>(data), stored.type, stored.shape);
}

void TensorMap::refuse_absent(const TensorRequest& request) const {
  fail(origin_, ": tensor ", joined(request.spellings, " or "), ": expected ", type_names(request.types), " ",
       request.shape.text(), ", got no tensor of that name");
}

View TensorMap::need(const TensorRequest& request) {
  const std::optional<size_t> index = lookup(request.spellings);
  if (!index) refuse_absent(request);
  return use(*index, request);
}

std::optional<View> TensorMap::find(const TensorRequest& request) {
  const std::optional<size_t> index = lookup(request.spellings);
  if (!index) return std::nullopt;
  return use(*index, request);
}

std::optional<View> TensorMap::find_any(std::string_view name) {
  const auto at = index_.find(canonical(name));
  if (at == index_.end()) return std::nullopt;
  const StoredTensor& stored = tensors_[at->second];
  return use(at->second, {.spellings = {}, .shape = stored.shape, .types = {stored.type}});
}

std::optional<Shape> TensorMap::shape_of(std::string_view name) const {
  const auto at = index_.find(canonical(name));
  if (at == index_.end()) return std::nullopt;
  return tensors_[at->second].shape;
}

StoredMatrix TensorMap::need_matrix(const std::vector<std::string>& spellings, int64_t rows, int64_t cols) {
  const TensorRequest request{.spellings = spellings,
                              .shape = {rows, cols},
                              .types = {DType::kF8E4M3, DType::kBF16, DType::kF16, DType::kF32}};
  const std::optional<size_t> index = lookup(spellings);
  if (!index) refuse_absent(request);
  StoredMatrix matrix{.weight = use(*index, request), .scale = {}};
  if (matrix.weight.type != DType::kF8E4M3) return matrix;

  const std::string scale_name = tensors_[*index].name + "_scale_inv";
  matrix.scale =
      need({.spellings = {scale_name},
            .shape = {(rows + kScaleBlock - 1) / kScaleBlock, (cols + kScaleBlock - 1) / kScaleBlock},
            .types = {DType::kF32, DType::kBF16}});
  if (const auto bad = first_non_finite(matrix.scale)) {
    fail(label(tensors_[*lookup({scale_name})]),
         ": expected finite block scales, got NaN or infinity at index ", *bad);
  }
  return matrix;
}

void TensorMap::refuse_unused(const IgnoredNames& ignored) const {
  constexpr size_t kListed = 10;
  std::vector<std::string> names;
  size_t count = 0;
  for (const StoredTensor& stored : tensors_) {
    if (stored.used || ignored.covers(stored.name) || ignored.covers(canonical(stored.name))) continue;
    if (++count <= kListed) names.push_back(label(stored) + " " + stored.shape.text());
  }
  if (count == 0) return;
  fail(origin_, ": expected only tensors that the model has, got ", count, " unknown: ", joined(names, "; "),
       count > kListed ? "; ..." : "");
}

void TensorMap::refuse_non_finite() {
  for (size_t index = 0; index < tensors_.size(); ++index) {
    const StoredTensor& stored = tensors_[index];
    if (!stored.used) continue;
    const View view(const_cast<std::byte*>(load(index)), stored.type, stored.shape);
    if (const auto bad = first_non_finite(view)) {
      fail(label(stored), ": expected finite numbers, got NaN or infinity at index ", *bad);
    }
  }
}

std::vector<std::string> TensorMap::names() const {
  std::vector<std::string> out;
  out.reserve(tensors_.size());
  for (const StoredTensor& stored : tensors_) out.push_back(stored.name);
  return out;
}

std::vector<View> TensorMap::views() const {
  std::vector<View> out;
  out.reserve(tensors_.size());
  for (const StoredTensor& stored : tensors_)
    out.emplace_back(const_cast<std::byte*>(stored.data), stored.type, stored.shape);
  return out;
}

uint64_t TensorMap::total_bytes() const {
  uint64_t sum = 0;
  for (const StoredTensor& stored : tensors_) {
    sum += static_cast<uint64_t>(stored.shape.elements()) * dtype_size(stored.type);
  }
  return sum;
}

uint64_t TensorMap::used_bytes() const {
  uint64_t sum = 0;
  for (const StoredTensor& stored : tensors_) {
    if (stored.used) sum += static_cast<uint64_t>(stored.shape.elements()) * dtype_size(stored.type);
  }
  return sum;
}

}  // namespace drama3
