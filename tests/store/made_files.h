// Files made on the fly for the tests: safetensors, zips and pickles, whole or broken in one place.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace drama3::testing {

// A folder of its own, removed at the end.
struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/drama3-store-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name) const { return path + "/" + name; }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(file(name), std::ios::binary) << content;
  }
};

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The sentence of the Error that the action throws; empty when it throws none.
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// value as size bytes, little-endian.
inline std::string little(uint64_t value, int size) {
  std::string out;
  for (int i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// A safetensors file of this header and data.
inline std::string safetensors(const std::string& header, const std::string& data) {
  return little(header.size(), 8) + header + data;
}

struct ZipPart {
  std::string name;
  std::string data;
  int method = 0;         // 0: stored
  uint32_t crc_flip = 0;  // differs from the true CRC by these bits
};

inline uint32_t crc32_of(const std::string& data) {
  uint32_t crc = ~uint32_t{0};
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

// A zip of these parts, as torch.save lays it out apart from alignment and ZIP64 records.
inline std::string zip_of(const std::vector<ZipPart>& parts) {
  std::string out;
  std::string central;
  for (const ZipPart& part : parts) {
    const std::string common = little(0, 2) + little(static_cast<uint64_t>(part.method), 2) + little(0, 2) +
                               little(0x21, 2) + little(crc32_of(part.data) ^ part.crc_flip, 4) +
                               little(part.data.size(), 4) + little(part.data.size(), 4) +
                               little(part.name.size(), 2) + little(0, 2);
    central += "PK\x01\x02" + little(20, 2) + little(20, 2) + common + little(0, 2) + little(0, 2) +
               little(0, 2) + little(0, 4) + little(out.size(), 4) + part.name;
    out += "PK\x03\x04" + little(20, 2) + common + part.name + part.data;
  }
  const std::string end = "PK\x05\x06" + little(0, 4) + little(parts.size(), 2) + little(parts.size(), 2) +
                          little(central.size(), 4) + little(out.size(), 4) + little(0, 2);
  return out + central + end;
}

// Pickle opcodes with their operands.
namespace op {
inline const std::string kProto = "\x80\x02";
inline std::string text(const std::string& value) { return "X" + little(value.size(), 4) + value; }
inline std::string integer(int64_t value) { return "\x8a\x08" + little(static_cast<uint64_t>(value), 8); }
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string tuple(const std::string& items) { return "(" + items + "t"; }
inline std::string integers(const std::vector<int64_t>& values) {
  std::string out;
  for (const int64_t value : values) out += integer(value);
  return tuple(out);
}
inline const std::string kOrderedDict = "ccollections\nOrderedDict\n)R";
inline std::string storage(const std::string& key, int64_t elements,
                           const std::string& type = "FloatStorage") {
  return tuple(text("storage") + global("torch", type) + text(key) + text("cpu") + integer(elements)) + "Q";
}
inline std::string tensor(const std::string& storage_ops, int64_t offset, const std::vector<int64_t>& sizes,
                          const std::vector<int64_t>& strides) {
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple(storage_ops + integer(offset) + integers(sizes) + integers(strides) + "\x89" + kOrderedDict) +
         "R";
}
// {key: value, ...} from alternating keys' and values' opcodes.
inline std::string dict(const std::string& items) { return "}(" + items + "u"; }
}  // namespace op

}  // namespace drama3::testing
