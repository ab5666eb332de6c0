// codec.pth as a source of tensors: a zip of raw storages and a pickle that says which tensors lie in them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/base/file.h"
#include "lib/store/pickle.h"
#include "lib/store/tensor_map.h"
#include "lib/store/zip_entries.h"

namespace drama3 {

// Names are accepted with and without generator. in front. Contiguous tensors are used in place, strided ones
// are copied; a storage is read, and its CRC compared, when the first of its tensors is asked for.
class CodecFile : public TensorMap {
 public:
  // Opens and checks the file; no storage is read yet.
  explicit CodecFile(const std::string& path);
  // The same over bytes that outlive it; file is for messages.
  CodecFile(const std::string& file, std::span<const std::byte> bytes);

 protected:
  const std::byte* load(size_t index) override;

 private:
  CodecFile(const std::string& file, std::optional<MappedFile> mapped, std::span<const std::byte> bytes);
  void check_byte_order();
  void add_tensor(PickledTensor tensor);
  const std::byte* gathered(size_t index, std::span<const std::byte> storage);

  std::optional<MappedFile> mapped_;
  ZipEntries zip_;
  std::vector<PickledTensor> layout_;  // of the tensor with the same index
  std::unordered_map<size_t, std::vector<std::byte>> copies_;
};

}  // namespace drama3
