// The zip and pickle of a codec file, streamed.
#include "tests/synthetic/codec_writer.h"

#include <fcntl.h>

#include <array>
#include <span>

#include "lib/base/check.h"
#include "lib/base/file.h"

namespace drama3 {
namespace {

std::string little(uint64_t value, int size) {
  std::string out;
  for (int i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

uint32_t crc32_of(std::span<const std::byte> data) {
  static const auto table = [] {
    std::array<uint32_t, 256> entries{};
    for (uint32_t i = 0; i < entries.size(); ++i) {
      entries[i] = i;
      for (int bit = 0; bit < 8; ++bit) entries[i] = entries[i] >> 1 ^ (entries[i] & 1 ? 0xedb88320u : 0u);
    }
    return entries;
  }();
  uint32_t crc = ~uint32_t{0};
  for (const std::byte b : data) crc = crc >> 8 ^ table[(crc ^ static_cast<uint32_t>(b)) & 0xff];
  return ~crc;
}

// The pickle of {name: tensor, ...}; storage i belongs to tensor i.
std::string state_dict(const std::vector<NamedTensor>& tensors) {
  const auto text = [](const std::string& value) { return "X" + little(value.size(), 4) + value; };
  const auto integer = [](int64_t value) { return "\x8a\x08" + little(static_cast<uint64_t>(value), 8); };
  std::string out = "\x80\x02}(";
  for (size_t i = 0; i < tensors.size(); ++i) {
    const View& view = tensors[i].view;
    std::string sizes, strides;
    for (int axis = 0; axis < view.shape.rank(); ++axis) {
      int64_t stride = 1;
      for (int inner = axis + 1; inner < view.shape.rank(); ++inner) stride *= view.shape[inner];
      sizes += integer(view.shape[axis]);
      strides += integer(stride);
    }
    out += text(tensors[i].name) + "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
           "ctorch\nFloatStorage\n" + text(std::to_string(i)) + text("cpu") + integer(view.elements()) +
           "tQ" + integer(0) + "(" + sizes + "t(" + strides + "t\x89" + "ccollections\nOrderedDict\n)RtR";
  }
  return out + "u.";
}

class ZipWriter {
 public:
  explicit ZipWriter(const std::string& path) : file_(File::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644)) {}

  void add(const std::string& name, std::span<const std::byte> data) {
    constexpr uint64_t kLocalHeader = 30, kAlignment = 64;
    const uint64_t data_at = at_ + kLocalHeader + name.size() + 4;
    const uint64_t padding = (kAlignment - data_at % kAlignment) % kAlignment;
    const std::string common = little(0, 2) + little(0, 2) + little(0, 2) + little(0x21, 2) +
                               little(crc32_of(data), 4) + little(data.size(), 4) + little(data.size(), 4) +
                               little(name.size(), 2);
    central_ += "PK\x01\x02" + little(20, 2) + little(20, 2) + common + little(0, 2) + little(0, 2) +
                little(0, 2) + little(0, 2) + little(0, 4) + little(at_, 4) + name;
    // Extra field "FB" holds the padding, as torch.save does it.
    put("PK\x03\x04" + little(20, 2) + common + little(4 + padding, 2) + name + "FB" + little(padding, 2) +
        std::string(padding, 'Z'));
    put(data);
    ++entries_;
    INVARIANT(at_ < uint64_t{1} << 32, "a zip of more than 4 GB");
  }
  void finish() {
    const uint64_t central_at = at_;
    put(central_);
    put("PK\x05\x06" + little(0, 4) + little(entries_, 2) + little(entries_, 2) + little(central_.size(), 4) +
        little(central_at, 4) + little(0, 2));
    file_.close();
  }

 private:
  void put(const std::string& text) { put(std::as_bytes(std::span(text))); }
  void put(std::span<const std::byte> data) {
    file_.write_all(data);
    at_ += data.size();
  }

  File file_;
  std::string central_;
  uint64_t at_ = 0;
  uint64_t entries_ = 0;
};

}  // namespace

void write_codec_file(const std::string& path, const std::vector<NamedTensor>& tensors) {
  ZipWriter zip(path);
  const std::string pickle = state_dict(tensors);
  zip.add("codec/data.pkl", std::as_bytes(std::span(pickle)));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const View& view = tensors[i].view;
    INVARIANT(view.type == DType::kF32 && view.dense(), tensors[i].name);
    zip.add("codec/data/" + std::to_string(i), {static_cast<const std::byte*>(view.data), view.bytes()});
  }
  const std::string version = "3\n";
  zip.add("codec/version", std::as_bytes(std::span(version)));
  zip.finish();
}

}  // namespace drama3
