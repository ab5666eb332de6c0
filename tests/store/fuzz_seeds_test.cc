// The seeds of the fuzz targets are whole files: each is read without an error.
#include "lib/store/codec_file.h"
#include "lib/store/json_reader.h"
#include "lib/store/pickle.h"
#include "lib/store/safetensors.h"
#include "tests/store/made_files.h"

using namespace drama3;
using namespace drama3::testing;

TEST_CASE("every seed is accepted by its parser") {
  const std::string seeds = DRAMA3_TEST_DATA "/../fuzz/seeds/";
  for (const char* name : {"dict", "ordered_dict", "wrapped"}) {
    CAPTURE(name);
    CHECK_FALSE(parse_state_dict(name, bytes_of(read_text(seeds + "pickle/" + name + ".pkl"))).empty());
  }
  CHECK(parse_safetensors("s", bytes_of(read_text(seeds + "safetensors/small.safetensors"))).size() == 4);
  CHECK(JsonDocument::read(seeds + "json/kinds.json", kConfigLimits).root().size() == 7);
  CodecFile codec(seeds + "codec_file/small.pth");
  CHECK(codec.size() == 3);
  for (const std::string& name : codec.names()) CHECK(codec.find_any(name));
}
