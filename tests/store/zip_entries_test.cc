// Zips: each rule has an archive that breaks only it; whole ones are read in place.
#include "lib/store/zip_entries.h"

#include "tests/store/made_files.h"

using namespace drama3;
using namespace drama3::testing;

namespace {

std::string refusal(const std::string& content) {
  return error_of([&] { ZipEntries("f.pth", bytes_of(content)); });
}

std::string replaced(std::string text, const std::string& from, const std::string& to, size_t nth = 0) {
  size_t at = text.find(from);
  for (; nth > 0; --nth) at = text.find(from, at + 1);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

const std::vector<ZipPart> kParts = {{"m/data.pkl", "pickle"}, {"m/data/0", "0123456789"}, {"m/empty", ""}};

}  // namespace

TEST_CASE("stored entries are read in place, with their CRC") {
  const std::string content = zip_of(kParts);
  ZipEntries zip("f.pth", bytes_of(content));
  CHECK(zip.size() == 3);
  CHECK(zip.size_of("data/0") == 10);
  CHECK_FALSE(zip.size_of("data/1"));
  const std::span<const std::byte> data = zip.read("data/0");
  CHECK(reinterpret_cast<const char*>(data.data()) == content.data() + content.find("0123456789"));
  CHECK(data.size() == 10);
  CHECK(zip.read("data/0").data() == data.data());
  CHECK(zip.read("empty").empty());
  CHECK(error_of([&] { zip.read("data/1"); }) ==
        "f.pth: zip entry m/data/1: expected it in the file, got no such entry");
}

TEST_CASE("an entry whose bytes or CRC differ is refused when read, and only then") {
  std::vector<ZipPart> parts = kParts;
  parts[1].crc_flip = 1;
  const std::string content = zip_of(parts);
  ZipEntries zip("f.pth", bytes_of(content));
  CHECK(zip.read("data.pkl").size() == 6);
  CHECK(has(error_of([&] { zip.read("data/0"); }),
            "f.pth: zip entry m/data/0: expected 10 intact bytes, got CRC error"));
}

TEST_CASE("compressed entries are refused by name") {
  std::vector<ZipPart> parts = kParts;
  parts[1].method = 8;
  CHECK(has(refusal(zip_of(parts)),
            "zip entry m/data/0: expected a stored (uncompressed, plain) entry, got compression method 8"));
}

TEST_CASE("names are relative, in one top folder, once") {
  const auto named = [](const std::string& name) {
    std::vector<ZipPart> parts = kParts;
    parts[1].name = name;
    return refusal(zip_of(parts));
  };
  for (const char* name : {"data", "/m/x", "m/../x", "../m", "m/", "m//x", "m\\x", "", "m/a b", "m/\x01"}) {
    CAPTURE(name);
    CHECK(has(named(name), "expected FOLDER/NAME, relative and without .."));
  }
  CHECK(has(named("n/data/0"), "zip entry n/data/0: expected it in the one top folder m/, got another"));
  CHECK(has(named("m/data.pkl"), "f.pth: zip: expected a consistent archive"));
}

TEST_CASE("local and central headers agree") {
  const std::string content = zip_of(kParts);
  CHECK(has(refusal(replaced(content, "m/data/0", "m/data/1")), "expected a consistent archive"));
  const size_t local_size = content.find("m/data/0") - 8;
  std::string other_size = content;
  other_size[local_size] = 11;
  CHECK(has(refusal(other_size), "expected a consistent archive"));
}

TEST_CASE("there is one end record, at the end, and its counts are bounded") {
  const std::string content = zip_of(kParts);
  CHECK(has(refusal(""), "expected an end record in the last 22 bytes of 0, got none"));
  CHECK(has(refusal(content.substr(0, content.size() - 1)), "got none"));
  CHECK(has(refusal(content + "x"), "got none"));
  std::vector<ZipPart> twice = kParts;
  twice[1].data = content;
  CHECK(has(refusal(zip_of(twice)), "expected one end record, got several"));
  std::string many = content;
  many.replace(many.size() - 12, 2, "\xff\xff");
  CHECK(has(refusal(many), "zip: expected at most 8192 entries, got 65535"));
  std::string wrong = content;
  wrong[wrong.size() - 12] = 2;
  wrong[wrong.size() - 14] = 2;
  CHECK(has(refusal(wrong), "expected a consistent archive"));
}

TEST_CASE("a ZIP64 end record is found where its locator says and bounded") {
  const std::string content = zip_of(kParts);
  const std::string end = content.substr(content.size() - 22);
  const std::string body = content.substr(0, content.size() - 22);
  const size_t central = body.find("PK\x01\x02");
  const auto zip64 = [&](uint64_t count, uint64_t place) {
    return body + "PK\x06\x06" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) +
           little(count, 8) + little(count, 8) + little(body.size() - central, 8) + little(central, 8) +
           "PK\x06\x07" + little(0, 4) + little(place, 8) + little(1, 4) + end;
  };
  ZipEntries zip("f.pth", bytes_of(zip64(3, body.size())));
  CHECK(has(refusal(zip64(uint64_t{1} << 40, body.size())),
            "expected at most 8192 entries, got 1099511627776"));
  CHECK(has(refusal(zip64(3, body.size() + 1)), "expected the ZIP64 end record at byte"));
  CHECK(has(refusal(zip64(3, ~uint64_t{0})), "expected the ZIP64 end record at byte"));
}

TEST_CASE("entries that share bytes are refused when the second is read") {
  // Two local headers, the second inside the data of the first.
  const std::string inner = zip_of({{"m/b", "xyz"}});
  const std::string local = inner.substr(0, inner.find("PK\x01\x02"));
  const std::string outer = zip_of({{"m/a", local}});
  const size_t outer_central = outer.find("PK\x01\x02");
  std::string central = outer.substr(outer_central, outer.size() - 22 - outer_central);
  std::string second = inner.substr(inner.find("PK\x01\x02"));
  second.resize(second.size() - 22);
  second.replace(42, 4, little(outer.find(local), 4));
  central += second;
  const std::string content = outer.substr(0, outer_central) + central + "PK\x05\x06" + little(0, 4) +
                              little(2, 2) + little(2, 2) + little(central.size(), 4) +
                              little(outer_central, 4) + little(0, 2);
  const std::string message = error_of([&] {
    ZipEntries zip("f.pth", bytes_of(content));
    zip.read("a");
    zip.read("b");
  });
  CHECK(has(message, "got bytes that belong to another entry too"));
}
