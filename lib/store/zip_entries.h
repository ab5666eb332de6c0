// The entries of a torch.save zip: stored ones only, checked as a whole at open, each with its CRC when read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace drama3 {

// An archive over bytes that outlive it. At open: one end record at the end, libzip's strict consistency
// checks (no duplicates, local and central headers agree), stored and unencrypted entries only, relative
// names in one top folder.
class ZipEntries {
 public:
  // file is for messages only.
  ZipEntries(const std::string& file, std::span<const std::byte> bytes);
  ~ZipEntries();
  ZipEntries(const ZipEntries&) = delete;
  ZipEntries& operator=(const ZipEntries&) = delete;

  size_t size() const { return entries_.size(); }
  // The bytes of the entry of this name inside the top folder, before reading it; nothing when there is none.
  std::optional<uint64_t> size_of(std::string_view name) const;
  // The entry's bytes, in place. The first call reads it to its end, so that its CRC is compared; Error when
  // there is no such entry, the CRC differs, or it shares bytes with an entry read before.
  std::span<const std::byte> read(std::string_view name);

 private:
  struct Entry {
    uint64_t index = 0;  // libzip's
    uint64_t bytes = 0;
    std::optional<std::span<const std::byte>> data;  // once read
  };
  struct Archive;

  void list_entries();
  std::string_view checked_inner_name(std::string_view name);
  std::span<const std::byte> locate(std::string_view name, const Entry& entry);

  std::string file_;
  std::unique_ptr<Archive> archive_;
  std::string top_;  // "codec/"
  std::map<std::string, Entry, std::less<>> entries_;
  std::map<uint64_t, uint64_t> ranges_;  // begin -> end of the entries read
};

}  // namespace drama3
