// Every code of the small float types goes to float and back; Philox gives its published answers.
#include "lib/base/scalars.h"

#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/philox.h"

using namespace drama3;

TEST_CASE("every e4m3 code survives the way through float") {
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f) {
      CHECK(std::isnan(e4m3_to_float(static_cast<uint8_t>(code))));
      continue;
    }
    CHECK(float_to_e4m3(e4m3_to_float(static_cast<uint8_t>(code))) == code);
  }
  CHECK(e4m3_to_float(0x7e) == 448.0f);
  CHECK(e4m3_to_float(0x01) == 0x1p-9f);
}

TEST_CASE("e4m3 rounds midpoints to the even code and saturates") {
  for (int code = 0; code < 0x7e; ++code) {
    const float below = e4m3_to_float(static_cast<uint8_t>(code));
    const float above = e4m3_to_float(static_cast<uint8_t>(code + 1));
    const float middle = (below + above) / 2;
    CHECK(float_to_e4m3(middle) == (code % 2 == 0 ? code : code + 1));
    CHECK(float_to_e4m3(std::nextafter(middle, 0.0f)) == code);
    CHECK(float_to_e4m3(std::nextafter(middle, 500.0f)) == code + 1);
  }
  CHECK(float_to_e4m3(1e9f) == 0x7e);
  CHECK(float_to_e4m3(-460.0f) == 0xfe);
}

TEST_CASE("every float16 and bfloat16 number survives the way through float") {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto code = static_cast<uint16_t>(bits);
    if (!std::isnan(f16_to_float(code))) CHECK(float_to_f16(f16_to_float(code)) == code);
    if (!std::isnan(bf16_to_float(code))) CHECK(float_to_bf16(bf16_to_float(code)) == code);
  }
  CHECK(float_to_f16(65519.0f) == 0x7bff);
  CHECK(float_to_f16(65520.0f) == 0x7c00);
}

TEST_CASE("philox gives the published words") {
  using Words = std::array<uint32_t, 4>;
  CHECK(philox4x32_10({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const uint32_t ones = 0xffffffffu;
  CHECK(philox4x32_10({ones, ones, ones, ones}, {ones, ones}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}
