// Opens codec.pth and gives out its tensors.
#include "lib/store/codec_file.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "lib/base/error.h"
#include "lib/store/lfs_pointer.h"

namespace drama3 {
namespace {

const NamePrefix kDropGenerator{"generator.", ""};

std::span<const std::byte> checked_bytes(const std::string& file, std::span<const std::byte> bytes) {
  refuse_lfs_pointer(file, bytes);
  return bytes;
}

std::string storage_entry(const PickledTensor& tensor) { return "data/" + tensor.storage; }

// True when the elements lie in row-major order without gaps.
bool is_dense(const PickledTensor& tensor) {
  int64_t expected = 1;
  for (int axis = tensor.shape.rank(); axis-- > 0;) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected) return false;
    expected *= tensor.shape[axis];
  }
  return true;
}

// Copies one axis after the other; at the last one elements are `stride` apart.
std::byte* gather(const PickledTensor& tensor, int axis, const std::byte* from, std::byte* out) {
  const size_t size = dtype_size(tensor.type);
  if (axis == tensor.shape.rank()) {
    std::memcpy(out, from, size);
    return out + size;
  }
  for (int64_t i = 0; i < tensor.shape[axis]; ++i) {
    out = gather(tensor, axis + 1, from + static_cast<size_t>(i * tensor.strides[axis]) * size, out);
  }
  return out;
}

}  // namespace

CodecFile::CodecFile(const std::string& path)
    : CodecFile(path, std::optional<MappedFile>(std::in_place, path), {}) {}

CodecFile::CodecFile(const std::string& file, std::span<const std::byte> bytes)
    : CodecFile(file, std::nullopt, bytes) {}

CodecFile::CodecFile(const std::string& file, std::optional<MappedFile> mapped,
                     std::span<const std::byte> bytes)
    : TensorMap(file, kDropGenerator),
      mapped_(std::move(mapped)),
      zip_(file, checked_bytes(file, mapped_ ? mapped_->bytes() : bytes)) {
  add_file(file);
  check_byte_order();
  for (PickledTensor& tensor : parse_state_dict(file, zip_.read("data.pkl"))) add_tensor(std::move(tensor));
  if (mapped_) mapped_->check_intact();
}

void CodecFile::check_byte_order() {
  if (!zip_.size_of("byteorder")) return;
  const std::span<const std::byte> bytes = zip_.read("byteorder");
  const std::string_view order(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (order != "little") fail(file_path(0), ": zip entry byteorder: expected little, got another byte order");
}

void CodecFile::add_tensor(PickledTensor tensor) {
  const std::string entry = storage_entry(tensor);
  const std::optional<uint64_t> bytes = zip_.size_of(entry);
  const uint64_t element = dtype_size(tensor.type);
  if (!bytes || *bytes % element != 0 || *bytes / element != tensor.storage_elements) {
    fail(file_path(0), ": tensor ", tensor.name, ": expected a zip entry ", entry, " of ",
         tensor.storage_elements, " elements of ", element, " bytes, got ",
         bytes ? join(*bytes, " bytes") : "no such entry");
  }
  add({.name = tensor.name, .type = tensor.type, .shape = tensor.shape});
  layout_.push_back(std::move(tensor));
}

const std::byte* CodecFile::load(size_t index) {
  const PickledTensor& tensor = layout_[index];
  const std::span<const std::byte> storage = zip_.read(storage_entry(tensor));
  if (tensor.shape.elements() == 0) return storage.data();
  if (!is_dense(tensor)) return gathered(index, storage);
  return storage.data() + tensor.offset * dtype_size(tensor.type);
}

const std::byte* CodecFile::gathered(size_t index, std::span<const std::byte> storage) {
  const PickledTensor& tensor = layout_[index];
  const auto [at, is_new] = copies_.try_emplace(index);
  if (is_new) {
    at->second.resize(static_cast<size_t>(tensor.shape.elements()) * dtype_size(tensor.type));
    gather(tensor, 0, storage.data() + tensor.offset * dtype_size(tensor.type), at->second.data());
  }
  return at->second.data();
}

}  // namespace drama3
