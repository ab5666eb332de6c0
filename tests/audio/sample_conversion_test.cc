// Float to 16-bit conversion: full scale, clamping, rounding, refusal of non-finite samples.
#include "lib/audio/sample_conversion.h"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace drama3 {

TEST_CASE("full scale becomes 32767 and never wraps") {
  const std::array<float, 8> in{1.0f, -1.0f, 1.0001f, 2.0f, -2.0f, 0.0f, 0.5f / 32767.0f, 1.5f / 32767.0f};
  std::array<int16_t, 8> out{};
  LevelMeter meter;
  convert_samples(out, in, meter);
  CHECK(out == std::array<int16_t, 8>{32767, -32767, 32767, 32767, -32768, 0, 0, 2});
  CHECK(meter.samples == 8);
  CHECK(meter.clipped == 3);
  CHECK(meter.peak == 2.0f);
}

TEST_CASE("a non-finite sample is an error that names it, counted over all calls") {
  LevelMeter meter;
  std::vector<int16_t> out(3);
  convert_samples(out, std::vector<float>{0.1f, 0.2f, 0.3f}, meter);
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    LevelMeter copy = meter;
    try {
      convert_samples(out, std::vector<float>{0.0f, bad, 0.0f}, copy);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("sample 4: expected a finite value") == 0);
    }
  }
}

}  // namespace drama3
