// Opens and reads torch.save zips with libzip over bytes in memory.
#include "lib/store/zip_entries.h"

#include <zip.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/base/error.h"

namespace drama3 {
namespace {

// Far above a codec's thousand; libzip's name table takes quadratic time when names are chosen to collide.
constexpr uint64_t kMaxEntries = 1 << 13;
constexpr uint64_t kEndRecordBytes = 22;
constexpr uint64_t kZip64LocatorBytes = 20;
constexpr uint64_t kZip64EndBytes = 56;
constexpr uint64_t kEndSearchBytes = (1 << 16) + kEndRecordBytes;  // where libzip looks for end records
constexpr std::string_view kEndMagic = "PK\x05\x06";
constexpr std::string_view kZip64LocatorMagic = "PK\x06\x07";
constexpr std::string_view kZip64EndMagic = "PK\x06\x06";

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Little-endian, at a place that the caller has checked.
uint64_t number_at(std::span<const std::byte> bytes, uint64_t at, int size) {
  uint64_t value = 0;
  for (int i = size; i-- > 0;)
    value = value << 8 | static_cast<uint64_t>(bytes[at + static_cast<uint64_t>(i)]);
  return value;
}

void check_entry_count(const std::string& file, uint64_t count) {
  if (count > kMaxEntries) fail(file, ": zip: expected at most ", kMaxEntries, " entries, got ", count);
}

// libzip reserves memory for as many entries as an end record claims, so the claims are bounded before it
// looks.
void check_end_record(const std::string& file, std::span<const std::byte> bytes) {
  const std::string_view all = text_of(bytes);
  if (bytes.size() < kEndRecordBytes || !all.substr(bytes.size() - kEndRecordBytes).starts_with(kEndMagic)) {
    fail(file, ": zip: expected an end record in the last ", kEndRecordBytes, " bytes of ", bytes.size(),
         ", got none; the file is cut or no torch.save file");
  }
  const uint64_t end = bytes.size() - kEndRecordBytes;
  const uint64_t search_begin = bytes.size() - std::min<uint64_t>(bytes.size(), kEndSearchBytes);
  if (all.find(kEndMagic, search_begin) != end) fail(file, ": zip: expected one end record, got several");
  check_entry_count(file, number_at(bytes, end + 10, 2));

  if (end < kZip64LocatorBytes || !all.substr(end - kZip64LocatorBytes).starts_with(kZip64LocatorMagic))
    return;
  const uint64_t zip64_end = number_at(bytes, end - kZip64LocatorBytes + 8, 8);
  if (zip64_end > end || end - zip64_end < kZip64EndBytes ||
      !all.substr(zip64_end).starts_with(kZip64EndMagic)) {
    fail(file, ": zip: expected the ZIP64 end record at byte ", zip64_end, ", got something else");
  }
  check_entry_count(file, number_at(bytes, zip64_end + 32, 8));
}

// What libzip reads from, and where it last read: the place of an entry's data follows from its local header,
// which only libzip has parsed.
struct ByteReader {
  std::span<const std::byte> bytes;
  uint64_t position = 0;
  uint64_t last_read = 0;
  zip_error_t error{};
};

zip_int64_t reader_seek(ByteReader& reader, void* data, zip_uint64_t size) {
  const zip_int64_t target =
      zip_source_seek_compute_offset(reader.position, reader.bytes.size(), data, size, &reader.error);
  if (target < 0) return -1;
  reader.position = static_cast<uint64_t>(target);
  return 0;
}

zip_int64_t reader_read(ByteReader& reader, void* data, zip_uint64_t size) {
  const uint64_t count =
      std::min<uint64_t>(size, reader.bytes.size() - std::min(reader.position, reader.bytes.size()));
  reader.last_read = reader.position;
  if (count > 0) std::memcpy(data, reader.bytes.data() + reader.position, count);
  reader.position += count;
  return static_cast<zip_int64_t>(count);
}

zip_int64_t reader_stat(const ByteReader& reader, void* data) {
  auto* stat = static_cast<zip_stat_t*>(data);
  zip_stat_init(stat);
  stat->valid = ZIP_STAT_SIZE;
  stat->size = reader.bytes.size();
  return sizeof(*stat);
}

zip_int64_t on_zip_command(void* state, void* data, zip_uint64_t size, zip_source_cmd_t command) {
  auto& reader = *static_cast<ByteReader*>(state);
  switch (command) {
    case ZIP_SOURCE_SUPPORTS:
      return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                            ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE,
                                            ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_SUPPORTS, -1);
    case ZIP_SOURCE_OPEN:
      reader.position = 0;
      return 0;
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
      return 0;
    case ZIP_SOURCE_READ:
      return reader_read(reader, data, size);
    case ZIP_SOURCE_SEEK:
      return reader_seek(reader, data, size);
    case ZIP_SOURCE_TELL:
      return static_cast<zip_int64_t>(reader.position);
    case ZIP_SOURCE_STAT:
      return reader_stat(reader, data);
    case ZIP_SOURCE_ERROR:
      return zip_error_to_data(&reader.error, data, size);
    default:
      zip_error_set(&reader.error, ZIP_ER_OPNOTSUPP, 0);
      return -1;
  }
}

// An entry opened for reading.
struct OpenEntry {
  zip_file_t* file;
  ~OpenEntry() {
    if (file != nullptr) zip_fclose(file);
  }
};

}  // namespace

struct ZipEntries::Archive {
  ByteReader reader;
  zip_t* zip = nullptr;

  explicit Archive(const std::string& file, std::span<const std::byte> bytes) : reader{.bytes = bytes} {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* const source = zip_source_function_create(on_zip_command, &reader, &error);
    if (source != nullptr) zip = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
    if (zip == nullptr) {
      if (source != nullptr) zip_source_free(source);
      const std::string reason = zip_error_strerror(&error);
      zip_error_fini(&error);
      fail(file, ": zip: expected a consistent archive, got: ", reason);
    }
    zip_error_fini(&error);
  }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;
  ~Archive() { zip_discard(zip); }
};

ZipEntries::ZipEntries(const std::string& file, std::span<const std::byte> bytes) : file_(file) {
  check_end_record(file, bytes);
  archive_ = std::make_unique<Archive>(file, bytes);
  list_entries();
}

ZipEntries::~ZipEntries() = default;

void ZipEntries::list_entries() {
  const auto count = static_cast<uint64_t>(zip_get_num_entries(archive_->zip, 0));
  check_entry_count(file_, count);
  for (uint64_t index = 0; index < count; ++index) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_stat_index(archive_->zip, index, ZIP_FL_ENC_RAW, &stat) != 0) {
      fail(file_, ": zip entry ", index, ": ", zip_strerror(archive_->zip));
    }
    const std::string_view name = stat.name;
    const std::string_view inner = checked_inner_name(name);
    if (stat.comp_method != ZIP_CM_STORE || stat.encryption_method != ZIP_EM_NONE) {
      fail(file_, ": zip entry ", name,
           ": expected a stored (uncompressed, plain) entry, got compression method ", stat.comp_method,
           ", encryption ", stat.encryption_method, "; save the file again with torch.save");
    }
    if (stat.size != stat.comp_size || stat.size > archive_->reader.bytes.size()) {
      fail(file_, ": zip entry ", name, ": expected equal sizes within the file's ",
           archive_->reader.bytes.size(), " bytes, got ", stat.size, " and ", stat.comp_size);
    }
    entries_.emplace(inner, Entry{.index = index, .bytes = stat.size, .data = {}});
  }
}

// The name without the top folder, which is the same for all entries.
std::string_view ZipEntries::checked_inner_name(std::string_view name) {
  const size_t slash = name.find('/');
  const bool printable =
      std::all_of(name.begin(), name.end(), [](char c) { return c > 0x20 && c < 0x7f && c != '\\'; });
  if (slash == 0 || slash == std::string_view::npos || name.ends_with('/') || !printable ||
      name.find("..") != std::string_view::npos || name.find("//") != std::string_view::npos) {
    fail(file_, ": zip entry names: expected FOLDER/NAME, relative and without .., got \"",
         printable ? name : std::string_view("(unprintable)"), "\"");
  }
  if (top_.empty()) top_ = name.substr(0, slash + 1);
  if (name.substr(0, slash + 1) != top_) {
    fail(file_, ": zip entry ", name, ": expected it in the one top folder ", top_, ", got another");
  }
  return name.substr(slash + 1);
}

std::optional<uint64_t> ZipEntries::size_of(std::string_view name) const {
  const auto at = entries_.find(name);
  if (at == entries_.end()) return std::nullopt;
  return at->second.bytes;
}

std::span<const std::byte> ZipEntries::read(std::string_view name) {
  const auto at = entries_.find(name);
  if (at == entries_.end())
    fail(file_, ": zip entry ", top_, name, ": expected it in the file, got no such entry");
  Entry& entry = at->second;
  if (!entry.data) entry.data = locate(name, entry);
  return *entry.data;
}

// Reads the entry through libzip piece by piece, which compares the CRC at its end, against the bytes in
// place.
std::span<const std::byte> ZipEntries::locate(std::string_view name, const Entry& entry) {
  const auto refuse = [&](const std::string& got) {
    fail(file_, ": zip entry ", top_, name, ": expected ", entry.bytes, " intact bytes, got ", got);
  };
  const OpenEntry open{zip_fopen_index(archive_->zip, entry.index, 0)};
  if (open.file == nullptr) refuse(zip_strerror(archive_->zip));
  std::array<std::byte, 1 << 16> piece;
  const std::span<const std::byte> all = archive_->reader.bytes;
  uint64_t begin = 0;
  for (uint64_t done = 0; done < entry.bytes;) {
    const uint64_t wanted = std::min<uint64_t>(piece.size(), entry.bytes - done);
    const zip_int64_t got = zip_fread(open.file, piece.data(), wanted);
    if (got <= 0) refuse(got == 0 ? "too few" : zip_error_strerror(zip_file_get_error(open.file)));
    if (done == 0) begin = archive_->reader.last_read;
    const auto count = static_cast<uint64_t>(got);
    if (begin > all.size() || count > all.size() - begin || done > all.size() - begin - count ||
        std::memcmp(all.data() + begin + done, piece.data(), count) != 0) {
      refuse("bytes from elsewhere in the file");
    }
    done += count;
  }
  if (zip_fread(open.file, piece.data(), 1) != 0) refuse(zip_error_strerror(zip_file_get_error(open.file)));
  if (entry.bytes == 0) return {};
  const auto after = ranges_.lower_bound(begin + 1);
  const bool overlaps = (after != ranges_.end() && after->first < begin + entry.bytes) ||
                        (after != ranges_.begin() && std::prev(after)->second > begin);
  if (overlaps) refuse("bytes that belong to another entry too");
  ranges_.emplace(begin, begin + entry.bytes);
  return all.subspan(begin, entry.bytes);
}

}  // namespace drama3
