// A checkpoint folder in the published layout: its files, and its safetensors weights mapped in place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/file.h"
#include "lib/store/tensor_map.h"

namespace drama3 {

// The folder and the paths inside it. Opens no weights, so a tokenizer can be read without them.
class CheckpointFolder {
 public:
  // Error when path is no folder or lacks any part of the layout that `parts` names ("config.json", ...): it
  // lists what was looked for and how to download the model.
  explicit CheckpointFolder(const std::string& path, const std::vector<std::string>& parts = {});

  const std::string& path() const { return path_; }
  // The path of a file in the folder; Error, naming it and the download command, when it is not there.
  std::string file(std::string_view name) const;
  bool has(std::string_view name) const;

 private:
  std::string path_;
};

// One file of the checkpoint and its digest.
struct FileHash {
  std::string name;  // inside the folder
  uint64_t bytes = 0;
  std::string sha256;
};

// The folder opened with all its safetensors shards mapped; TensorMap answers for their tensors. Names are
// accepted with model.language_model. or model. in front.
class Checkpoint : public TensorMap {
 public:
  // Opens and checks index and shards; the weights themselves are not read.
  explicit Checkpoint(const std::string& path);

  const CheckpointFolder& folder() const { return folder_; }
  std::string config_path() const { return folder_.file("config.json"); }
  std::string tokenizer_path() const { return folder_.file("tokenizer.json"); }
  std::string codec_path() const { return folder_.file("codec.pth"); }

  // Asks the kernel to read all small tensors, without waiting: they are read one by one where weights stream
  // past the page cache.
  void prefetch_small() const;
  // Error that lists tensors nobody asked for, other than those of parts the engine does not have.
  void finish() const;
  // Bytes of all files of the checkpoint.
  uint64_t file_bytes() const;
  // The digest of every file, by name; reads them all.
  std::vector<FileHash> file_hashes() const;
  // One digest over file_hashes(), hexadecimal; reads every file.
  std::string hash() const;

 private:
  void open_shards();
  // Maps and checks one safetensors file; returns the names of its tensors.
  std::vector<std::string> add_shard(const std::string& name);
  std::vector<std::string> file_names() const;

  CheckpointFolder folder_;
  std::vector<std::string> shard_names_;
  std::vector<MappedFile> shards_;
};

}  // namespace drama3
