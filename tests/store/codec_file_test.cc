// codec.pth files made on the fly: shared and strided storages, prefixes, types, byte order, absent entries.
#include "lib/store/codec_file.h"

#include <cstring>

#include "tests/store/made_files.h"

using namespace drama3;
using namespace drama3::testing;

namespace {

const std::vector<DType> kF32{DType::kF32};

std::string floats(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    const auto value = static_cast<float>(i);
    out.append(reinterpret_cast<const char*>(&value), 4);
  }
  return out;
}

std::string file_of(const std::string& items, const std::vector<ZipPart>& more) {
  std::vector<ZipPart> parts = {{"m/data.pkl", op::kProto + op::dict(items) + "."}};
  parts.insert(parts.end(), more.begin(), more.end());
  return zip_of(parts);
}

std::vector<float> values(const View& view) {
  std::vector<float> out(static_cast<size_t>(view.elements()));
  std::memcpy(out.data(), view.data, view.bytes());
  return out;
}

std::string open_error(const std::string& content) {
  return error_of([&] { CodecFile("c.pth", bytes_of(content)); });
}

}  // namespace

TEST_CASE("tensors share a storage; strided ones are copied in order, dense ones used in place") {
  const std::string storage = op::storage("7", 12);
  const std::string content = file_of(
      op::text("whole") + op::tensor(storage, 0, {3, 4}, {4, 1}) + op::text("turned") +
          op::tensor(storage, 0, {4, 3}, {1, 4}) + op::text("part") + op::tensor(storage, 5, {2, 2}, {4, 1}) +
          op::text("row") + op::tensor(storage, 8, {1, 4}, {99, 1}) + op::text("none") +
          op::tensor(storage, 0, {0, 4}, {4, 1}) + op::text("one") + op::tensor(storage, 3, {}, {}),
      {{"m/data/7", floats(12)}});
  CodecFile codec("c.pth", bytes_of(content));
  const View whole = codec.need({{"whole"}, {3, 4}, kF32});
  CHECK(static_cast<const char*>(whole.data) == content.data() + content.find(floats(12)));
  CHECK(values(codec.need({{"turned"}, {4, 3}, kF32})) ==
        std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  CHECK(values(codec.need({{"part"}, {2, 2}, kF32})) == std::vector<float>{5, 6, 9, 10});
  CHECK(values(codec.need({{"row"}, {1, 4}, kF32})) == std::vector<float>{8, 9, 10, 11});
  CHECK(codec.need({{"none"}, {0, 4}, kF32}).elements() == 0);
  CHECK(values(codec.need({{"one"}, {}, kF32})) == std::vector<float>{3});
  CHECK(codec.need({{"turned"}, {4, 3}, kF32}).data == codec.need({{"turned"}, {4, 3}, kF32}).data);
}

TEST_CASE("the generator prefix may stand in the file or in the request") {
  const std::string content = file_of(op::text("generator.a") + op::tensor(op::storage("0", 1), 0, {1}, {1}),
                                      {{"m/data/0", floats(1)}});
  CodecFile codec("c.pth", bytes_of(content));
  CHECK(codec.find({{"a"}, {1}, kF32}));
  CHECK(codec.find({{"generator.a"}, {1}, kF32}));
  const std::string twice = file_of(op::text("generator.a") + op::tensor(op::storage("0", 1), 0, {1}, {1}) +
                                        op::text("a") + op::tensor(op::storage("0", 1), 0, {1}, {1}),
                                    {{"m/data/0", floats(1)}});
  CHECK(
      has(open_error(twice), "c.pth: tensor a: expected each name once, got it in c.pth too as generator.a"));
}

TEST_CASE("half and bfloat storages come as such, integer ones only if unused") {
  const std::string content =
      file_of(op::text("h") + op::tensor(op::storage("0", 2, "HalfStorage"), 0, {2}, {1}) + op::text("b") +
                  op::tensor(op::storage("1", 2, "BFloat16Storage"), 0, {2}, {1}) + op::text("mask") +
                  op::tensor(op::storage("2", 3, "BoolStorage"), 0, {3}, {1}),
              {{"m/data/0", "abcd"}, {"m/data/1", "efgh"}, {"m/data/2", "xyz"}});
  CodecFile codec("c.pth", bytes_of(content));
  const std::vector<DType> any{DType::kF32, DType::kF16, DType::kBF16};
  CHECK(codec.need({{"h"}, {2}, any}).type == DType::kF16);
  CHECK(codec.need({{"b"}, {2}, any}).type == DType::kBF16);
  CHECK(has(error_of([&] {
              codec.need({{"mask"}, {3}, any});
            }),
            "c.pth: tensor mask: expected F32 or F16 or BF16 [3], got BOOL [3]"));
  CHECK(has(error_of([&] { codec.refuse_unused({}); }),
            "c.pth: expected only tensors that the model has, got 1 unknown: c.pth: tensor mask [3]"));
  codec.refuse_unused({.prefixes = {}, .suffixes = {"mask"}});
}

TEST_CASE("storages have exactly the bytes that the pickle states") {
  const std::string tensor = op::text("a") + op::tensor(op::storage("0", 2), 0, {2}, {1});
  CHECK(open_error(file_of(tensor, {{"m/data/0", floats(2)}})) == "");
  for (const std::string& data : {floats(1), floats(3), floats(2) + "x", std::string()}) {
    CHECK(has(open_error(file_of(tensor, {{"m/data/0", data}})),
              "c.pth: tensor a: expected a zip entry data/0 of 2 elements of 4 bytes, got " +
                  std::to_string(data.size()) + " bytes"));
  }
  CHECK(has(open_error(file_of(tensor, {{"m/data/1", floats(2)}})),
            "of 2 elements of 4 bytes, got no such entry"));
}

TEST_CASE("a storage is read, and its CRC compared, only when asked for") {
  const std::string content = file_of(op::text("a") + op::tensor(op::storage("0", 1), 0, {1}, {1}) +
                                          op::text("b") + op::tensor(op::storage("1", 1), 0, {1}, {1}),
                                      {{"m/data/0", floats(1)}, {"m/data/1", floats(1), 0, 1}});
  CodecFile codec("c.pth", bytes_of(content));
  CHECK(codec.find({{"a"}, {1}, kF32}));
  CHECK(has(error_of([&] {
              codec.need({{"b"}, {1}, kF32});
            }),
            "c.pth: zip entry m/data/1: expected 4 intact bytes, got CRC error"));
}

TEST_CASE("byte order, pickle entry, pointers and other files") {
  const std::string tensor = op::text("a") + op::tensor(op::storage("0", 1), 0, {1}, {1});
  CHECK(open_error(file_of(tensor, {{"m/data/0", floats(1)}, {"m/byteorder", "little"}})) == "");
  CHECK(has(open_error(file_of(tensor, {{"m/data/0", floats(1)}, {"m/byteorder", "big"}})),
            "byteorder: expected little"));
  CHECK(has(open_error(zip_of({{"m/data/0", "x"}})), "c.pth: zip entry m/data.pkl: expected it in the file"));
  CHECK(has(open_error("version https://git-lfs.github.com/spec/v1\n"),
            "c.pth: expected the file itself, got a Git LFS pointer"));
  CHECK(has(open_error("\x80\x02}."), "c.pth: zip: expected an end record"));
  CHECK(has(error_of([] { CodecFile("/nowhere/codec.pth"); }), "/nowhere/codec.pth: cannot open"));
}

TEST_CASE("numbers that are not finite are found with tensor and index") {
  std::string data = floats(3);
  data.replace(8, 4, little(0x7fc00000, 4));
  const std::string content =
      file_of(op::text("a") + op::tensor(op::storage("0", 3), 0, {3}, {1}), {{"m/data/0", data}});
  CodecFile codec("c.pth", bytes_of(content));
  codec.refuse_non_finite();  // nobody asked for it yet
  codec.need({{"a"}, {3}, kF32});
  CHECK(error_of([&] { codec.refuse_non_finite(); }) ==
        "c.pth: tensor a: expected finite numbers, got NaN or infinity at index 2");
}
