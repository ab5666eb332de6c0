// Float samples to 16-bit ones.
#include "lib/audio/sample_conversion.h"

#include <algorithm>
#include <cmath>

#include "lib/base/check.h"
#include "lib/base/error.h"

namespace drama3 {

void convert_samples(std::span<int16_t> out, std::span<const float> in, LevelMeter& meter) {
  INVARIANT(out.size() == in.size(), out.size(), " samples out, ", in.size(), " in");
  for (size_t i = 0; i < in.size(); ++i) {
    if (!std::isfinite(in[i])) {
      fail("sample ", meter.samples, ": expected a finite value, got ", in[i], "; the audio is not usable");
    }
    const float scaled = std::nearbyint(in[i] * 32767.0f);
    const float clamped = std::clamp(scaled, -32768.0f, 32767.0f);
    meter.clipped += clamped != scaled ? 1 : 0;
    meter.peak = std::max(meter.peak, std::fabs(in[i]));
    ++meter.samples;
    out[i] = static_cast<int16_t>(clamped);
  }
}

}  // namespace drama3
