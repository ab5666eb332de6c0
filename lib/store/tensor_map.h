// Stored tensors by name: answers a model part's requests, checks them, and knows which nobody asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <vector>

#include "lib/tensor/weight_source.h"

namespace drama3 {

// Names that may stay unused without being an error.
struct IgnoredNames {
  std::vector<std::string> prefixes;
  std::vector<std::string> suffixes;

  bool covers(std::string_view name) const;
};

// A leading part of a name that is written in more than one way: from is replaced by to, in stored and in
// requested names alike.
struct NamePrefix {
  std::string from;
  std::string to;
};

// One tensor as stored.
struct StoredTensor {
  std::string name;
  DType type = DType::kF32;
  Shape shape;
  uint32_t file = 0;                // index returned by TensorMap::add_file
  const std::byte* data = nullptr;  // unaligned; null for a tensor that is loaded when asked for
  bool used = false;
};

// The WeightSource over a list of stored tensors. Every error names file, tensor, expected and got.
class TensorMap : public WeightSource {
 public:
  // origin names the folder or file that errors about absent tensors point to.
  TensorMap(std::string origin, NamePrefix prefix) : origin_(std::move(origin)), prefix_(std::move(prefix)) {}

  View need(const TensorRequest& request) override;
  std::optional<View> find(const TensorRequest& request) override;
  std::optional<Shape> shape_of(std::string_view name) const override;
  StoredMatrix need_matrix(const std::vector<std::string>& spellings, int64_t rows, int64_t cols) override;

  // The tensor under this name whatever its type and shape; nothing when absent.
  std::optional<View> find_any(std::string_view name);
  // Error that lists the tensors nobody has asked for and that are not ignored: called when all parts are
  // loaded.
  void refuse_unused(const IgnoredNames& ignored) const;
  // Reads every floating-point tensor that was asked for; NaN or infinity is an Error with file, tensor and
  // index.
  void refuse_non_finite();

  size_t size() const { return tensors_.size(); }
  // The stored names, file after file.
  std::vector<std::string> names() const;
  // All tensors as stored, in the same order; without data those that are loaded when asked for. Marks none
  // as used.
  std::vector<View> views() const;
  // Bytes of all tensors, of all that were asked for.
  uint64_t total_bytes() const;
  uint64_t used_bytes() const;

 protected:
  uint32_t add_file(const std::string& path);
  // Takes one tensor in under its canonical name; Error when the name is there already.
  void add(StoredTensor tensor);
  const std::string& file_path(uint32_t file) const { return files_[file]; }
  // "FILE: tensor NAME".
  std::string label(const StoredTensor& tensor) const;
  // The dense data of tensor index, checked and in memory for as long as this map lives.
  virtual const std::byte* load(size_t index) { return tensors_[index].data; }

 private:
  std::string canonical(std::string_view name) const;
  // The index stored under one of the spellings, or nothing; Error when there are two.
  std::optional<size_t> lookup(const std::vector<std::string>& spellings) const;
  View use(size_t index, const TensorRequest& request);
  [[noreturn]] void refuse_absent(const TensorRequest& request) const;

  std::string origin_;
  NamePrefix prefix_;
  std::vector<std::string> files_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, size_t, std::less<>>
      index_;  // canonical name -> tensor; a file cannot make this slow
};

}  // namespace drama3
