// Opens a checkpoint folder: finds its files, checks index against shards, maps the weights.
#include "lib/store/checkpoint.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "lib/base/error.h"
#include "lib/base/sha256.h"
#include "lib/base/system_calls.h"
#include "lib/store/json_reader.h"
#include "lib/store/safetensors.h"

namespace drama3 {
namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kGenerationConfig = "generation_config.json";
constexpr const char* kTokenizer = "tokenizer.json";
constexpr const char* kCodec = "codec.pth";
constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// The image and draft-token parts of the published files, which this engine does not have.
const IgnoredNames kIgnored{.prefixes = {"model.visual.", "mtp."}, .suffixes = {}};

std::string download_hint(const std::string& folder) {
  return join("to download the model: huggingface-cli download fishaudio/drama-3 --local-dir ", folder);
}

// A name that cannot leave the folder.
bool is_plain_name(std::string_view name) {
  const bool all_plain = std::all_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '/' && c != '\\' && c != 0x7f;
  });
  return !name.empty() && name != "." && name.find("..") == std::string_view::npos && all_plain;
}

using WeightMap = std::map<std::string_view, std::string_view>;  // tensor -> shard

// The index's table; views point into the document.
WeightMap read_weight_map(const JsonDocument& index) {
  WeightMap map;
  const JsonValue table = index.root().at("weight_map");
  for (const JsonValue member : table.members()) {
    if (!member.is_text() || !is_plain_name(member.as_text())) {
      member.refuse("the plain name of a file in the same folder");
    }
    map.emplace(member.key(), member.as_text());
  }
  if (map.empty()) table.refuse("at least one tensor");
  return map;
}

}  // namespace

CheckpointFolder::CheckpointFolder(const std::string& path, const std::vector<std::string>& parts)
    : path_(path) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  struct ::stat status {};
  const bool exists = sys::stat(path_.c_str(), &status) == 0;
  const int error_number = exists ? 0 : errno;
  if (!exists || !S_ISDIR(status.st_mode)) {
    fail(path_.empty() ? "model folder" : path_, ": expected a folder with ", kConfig, ", ", kTokenizer, ", ",
         kCodec, " and ", kSingle, " or ", kIndex, " with its shards, got ",
         exists ? "something that is no folder" : error_text(error_number), "; ",
         download_hint(path_.empty() ? "DIR" : path_));
  }
  std::string missing;
  for (const std::string& part : parts) {
    if (!has(part)) missing += (missing.empty() ? "" : ", ") + part;
  }
  if (!missing.empty()) {
    fail(path_, ": expected the files of a model, got a folder without ", missing, "; ",
         download_hint(path_));
  }
}

bool CheckpointFolder::has(std::string_view name) const {
  const std::string file = path_ + "/" + std::string(name);
  struct ::stat status {};
  if (sys::stat(file.c_str(), &status) == 0) return true;
  const int error_number = errno;
  if (error_number == ENOENT) return false;
  fail(file, ": cannot look for it: ", error_text(error_number));
}

std::string CheckpointFolder::file(std::string_view name) const {
  if (!has(name)) {
    fail(path_, "/", name, ": expected a file of the model, got no such file; ", download_hint(path_));
  }
  return path_ + "/" + std::string(name);
}

Checkpoint::Checkpoint(const std::string& path)
    : TensorMap(path, {.from = "model.language_model.", .to = "model."}),
      folder_(path, {kConfig, kTokenizer, kCodec}) {
  const bool has_index = folder_.has(kIndex);
  const bool has_single = folder_.has(kSingle);
  if (!has_index && !has_single) {
    fail(folder_.path(), ": expected ", kSingle, " or ", kIndex, " with its shards, got neither; ",
         download_hint(folder_.path()));
  }
  if (has_index) {
    open_shards();
  } else {
    add_shard(kSingle);
  }
  if (has_single && std::find(shard_names_.begin(), shard_names_.end(), kSingle) == shard_names_.end()) {
    fail(folder_.path(), ": expected ", kSingle, " or ", kIndex,
         ", got both, and the index does not name the former");
  }
}

std::vector<std::string> Checkpoint::add_shard(const std::string& name) {
  shards_.emplace_back(folder_.file(name));
  shard_names_.push_back(name);
  const MappedFile& shard = shards_.back();
  const uint32_t file = add_file(shard.path());
  std::vector<std::string> names;
  for (SafetensorsEntry& entry : parse_safetensors(shard.path(), shard.bytes())) {
    names.push_back(entry.name);
    add({.name = std::move(entry.name),
         .type = entry.type,
         .shape = entry.shape,
         .file = file,
         .data = shard.bytes().data() + entry.begin});
  }
  shard.check_intact();
  return names;
}

void Checkpoint::open_shards() {
  const JsonDocument index = JsonDocument::read(folder_.file(kIndex), kIndexLimits);
  WeightMap map = read_weight_map(index);
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map) shards.emplace(shard);

  for (const std::string& shard : shards) {
    for (const std::string& name : add_shard(shard)) {
      const auto at = map.find(name);
      if (at == map.end() || at->second != shard) {
        fail(index.file(), ": tensor ", name, ": expected the index to place it in ", shard, ", got ",
             at == map.end() ? "no entry" : std::string(at->second));
      }
      map.erase(at);
    }
  }
  if (map.empty()) return;
  const auto& [name, shard] = *map.begin();
  fail(folder_.path(), "/", shard, ": tensor ", name,
       ": expected it in this shard as the index says, got no such tensor");
}

void Checkpoint::prefetch_small() const {
  constexpr uint64_t kSmall = 32 << 10;
  for (const View& view : views()) {
    if (view.bytes() == 0 || view.bytes() > kSmall) continue;
    if (const auto place = mapped_place(view.data, view.bytes()))
      place->file->prefetch(place->offset, view.bytes());
  }
}

void Checkpoint::finish() const { refuse_unused(kIgnored); }

std::vector<std::string> Checkpoint::file_names() const {
  std::vector<std::string> names = shard_names_;
  for (const char* name : {kConfig, kGenerationConfig, kTokenizer, kCodec, kIndex}) {
    if (folder_.has(name)) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t Checkpoint::file_bytes() const {
  uint64_t sum = 0;
  for (const std::string& name : file_names()) sum += File::open_regular(folder_.file(name)).size();
  return sum;
}

std::vector<FileHash> Checkpoint::file_hashes() const {
  std::vector<FileHash> hashes;
  for (const std::string& name : file_names()) {
    const File file = File::open_regular(folder_.file(name));
    const uint64_t size = file.size();
    std::vector<std::byte> buffer(std::min<uint64_t>(size, 1 << 20));
    Sha256 hash;
    for (uint64_t at = 0; at < size; at += buffer.size()) {
      const std::span<std::byte> part(buffer.data(), std::min<uint64_t>(buffer.size(), size - at));
      file.read_at(at, part);
      hash.update(part);
    }
    hashes.push_back({.name = name, .bytes = size, .sha256 = hash.hex()});
  }
  return hashes;
}

std::string Checkpoint::hash() const {
  std::string lines;
  for (const FileHash& file : file_hashes()) lines += file.sha256 + "  " + file.name + "\n";
  return sha256_hex(std::as_bytes(std::span(lines)));
}

}  // namespace drama3
