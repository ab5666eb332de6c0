// Safetensors: each rule has a file that breaks only it and is refused with file, item, expected and got.
#include "lib/store/safetensors.h"

#include <chrono>

#include "tests/store/made_files.h"

using namespace drama3;
using namespace drama3::testing;

namespace {

std::string refusal(const std::string& content) {
  return error_of([&] { parse_safetensors("f.safetensors", bytes_of(content)); });
}

std::string header_refusal(const std::string& header, size_t data_bytes = 8) {
  return refusal(safetensors(header, std::string(data_bytes, '\0')));
}

// A header of one tensor "t" with this dtype, shape and offsets.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

}  // namespace

TEST_CASE("a whole file is listed in the order of its data") {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]},)"
      R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"e":{"dtype":"F16","shape":[0,4],"data_offsets":[8,8]},)"
      R"("s":{"dtype":"I16","shape":[],"data_offsets":[11,13]}}   )";
  const auto entries = parse_safetensors("f", bytes_of(safetensors(header, std::string(13, 'x'))));
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].name == "a");
  CHECK(entries[0].begin == 8 + header.size());
  CHECK(entries[0].bytes == 8);
  CHECK(entries[0].shape == Shape{1, 2});
  CHECK(entries[1].name == "e");
  CHECK(entries[2].type == DType::kU8);
  CHECK(entries[3].shape.rank() == 0);
  CHECK(entries[3].begin == 8 + header.size() + 11);  // odd offsets exist
  CHECK(parse_safetensors("f", bytes_of(safetensors("{}", ""))).empty());
}

TEST_CASE("length field and header text") {
  CHECK(refusal("") == "f.safetensors: safetensors: expected at least 8 bytes, got 0");
  CHECK(has(refusal("1234567"), "expected at least 8 bytes, got 7"));
  CHECK(has(refusal(std::string(8, '\xff') + "{}"),
            "header length: expected at most 100000000, got 18446744073709551615"));
  CHECK(has(refusal(little(100'000'001, 8) + "{}"), "expected at most 100000000, got 100000001"));
  CHECK(has(refusal(little(3, 8) + "{}"), "header: expected 3 bytes, got a file with 2"));
  CHECK(has(header_refusal(" {}", 0), "expected it to begin with {"));
  CHECK(has(header_refusal("", 0), "expected it to begin with {"));
  CHECK(header_refusal("{}    ", 0) == "");
  CHECK(has(header_refusal("{}\n", 0), "expected } and blanks at its end"));
  CHECK(has(header_refusal("{} {}", 0), "f.safetensors: JSON, byte "));
  CHECK(has(header_refusal("{\"\xff\":1}", 0), "f.safetensors: JSON, byte "));
  CHECK(has(header_refusal(std::string("{}\0", 3), 0), "expected } and blanks"));
  CHECK(has(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"),
            "got a Git LFS pointer of "));
}

TEST_CASE("keys once, metadata is text, entries have exactly three members") {
  const std::string entry = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  CHECK(header_refusal("{\"t\":" + entry + "}") == "");
  CHECK(has(header_refusal("{\"t\":" + entry + ",\"t\":" + entry + "}"), "\"t\" twice"));
  CHECK(has(header_refusal(R"({"t":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})"),
            "\"dtype\" twice"));
  CHECK(has(header_refusal(R"({"__metadata__":{"a":1}})", 0), "__metadata__.a: expected text, got 1"));
  CHECK(has(header_refusal(R"({"__metadata__":[]})", 0), "__metadata__: expected an object"));
  CHECK(
      has(header_refusal(R"({"t":[1]})"), "t: expected an object of exactly dtype, shape and data_offsets"));
  CHECK(has(header_refusal(R"({"t":{"dtype":"F32","shape":[2]}})"), "expected an object of exactly"));
  CHECK(has(header_refusal(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})"),
            "expected an object of exactly"));
  CHECK(has(header_refusal(R"({"t":{"dtype":"F32","shape":[2],"offsets":[0,8]}})"),
            "expected the key \"data_offsets\""));
}

TEST_CASE("dtype, rank and numbers") {
  CHECK(has(header_refusal(one("\"F33\"", "[2]", "[0,8]")), "t.dtype: expected one of the dtypes F64, F32"));
  CHECK(has(header_refusal(one("7", "[2]", "[0,8]")), "t.dtype: expected text, got 7"));
  CHECK(header_refusal(one("\"U8\"", "[1,1,1,1,1,1,1,8]", "[0,8]")) == "");
  CHECK(has(header_refusal(one("\"U8\"", "[1,1,1,1,1,1,1,1,8]", "[0,8]")),
            "t.shape: expected an array of at most 8"));
  CHECK(has(header_refusal(one("\"U8\"", "8", "[0,8]")), "t.shape: expected an array"));
  for (const char* number : {"-1", "2.0", "2e0", "18446744073709551616", "\"2\"", "null"}) {
    CAPTURE(number);
    CHECK(has(header_refusal(one("\"F32\"", std::string("[") + number + "]", "[0,8]")),
              "t.shape[0]: expected an integer"));
    CHECK(has(header_refusal(one("\"F32\"", "[2]", std::string("[0,") + number + "]")),
              "t.data_offsets[1]: expected an integer"));
  }
  CHECK(has(header_refusal(one("\"F32\"", "[2]", "[0]")),
            "t.data_offsets: expected an array of begin and end"));
  CHECK(has(header_refusal(one("\"F32\"", "[2]", "[0,8,8]")),
            "t.data_offsets: expected an array of begin and end"));
  CHECK(has(header_refusal(one("\"F32\"", "[2]", "[8,0]")),
            "t.data_offsets: expected begin <= end, got 8 and 0"));
}

TEST_CASE("sizes are the product of the shape, by arithmetic that cannot wrap") {
  CHECK(
      has(header_refusal(one("\"F64\"", "[2]", "[0,8]")), "tensor t: expected 16 bytes for F64 [2], got 8"));
  CHECK(
      has(header_refusal(one("\"F32\"", "[3]", "[0,8]")), "tensor t: expected 12 bytes for F32 [3], got 8"));
  // 2^32 * 2^32 * 4 wraps to 0, 2^62 * 4 wraps to 0.
  CHECK(has(header_refusal(one("\"F32\"", "[4294967296,4294967296]", "[0,0]"), 0),
            "expected more than 2^63 bytes"));
  CHECK(has(header_refusal(one("\"F32\"", "[4611686018427387904]", "[0,0]"), 0),
            "expected more than 2^63 bytes"));
  CHECK(has(header_refusal(one("\"U8\"", "[9223372036854775808]", "[0,0]"), 0),
            "t.shape[0]: expected an integer in 0.."));
}

TEST_CASE("tensors touch exactly, from the header to the end of the file") {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}";
  };
  CHECK(header_refusal(two("[0,4]", "[4,8]")) == "");
  CHECK(has(header_refusal(two("[0,4]", "[3,7]"), 7),
            "tensor b: expected its data to begin at 4 where the tensor before it ends, got 3 (an overlap)"));
  CHECK(has(header_refusal(two("[0,4]", "[0,4]"), 4), "(an overlap)"));
  CHECK(has(header_refusal(two("[0,4]", "[5,9]"), 9),
            "tensor b: expected its data to begin at 4 where the tensor before it ends, got 5 (a hole)"));
  CHECK(has(header_refusal(two("[1,5]", "[5,9]"), 9), "tensor a: expected its data to begin at 0"));
  CHECK(has(header_refusal(two("[0,4]", "[4,8]"), 7),
            "safetensors data: expected 8 bytes, got 7; the file is cut"));
  CHECK(has(header_refusal(two("[0,4]", "[4,8]"), 9), "safetensors data: expected 8 bytes, got 9"));
  CHECK(has(header_refusal(two("[0,4]", "[18446744073709551611,18446744073709551615]")), "(a hole)"));
  CHECK(has(header_refusal("{}", 1), "safetensors data: expected 0 bytes, got 1"));
}

TEST_CASE("hostile headers of 50 MB are refused within a second") {
  const size_t size = 50'000'000;
  std::string entries = "{\"a\":0";
  while (entries.size() < size) entries += ",\"k" + std::to_string(entries.size()) + "\":0";
  std::string zeros = "{\"t\":[0";
  while (zeros.size() < size) zeros += ",0,0,0,0";
  const std::vector<std::string> headers = {entries + "}", "{" + std::string(size, ' ') + "}",
                                            "{\"t\":" + std::string(size, '['), zeros + "]}",
                                            "{\"" + std::string(size, 'n') + "\":0}"};
  for (const std::string& header : headers) {
    const std::string content = safetensors(header, "");
    const auto begin = std::chrono::steady_clock::now();
    CHECK(refusal(content) != "");
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    MESSAGE(header.substr(0, 12), " ... refused in ", seconds.count(), " s");
    CHECK(seconds.count() < 1.0);
  }
}
