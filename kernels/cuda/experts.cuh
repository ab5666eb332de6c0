// What the experts' kernels for one row and for many share: the product of a block of FP8 codes, and the
// sizes they are made for.
#pragma once

#include "kernels/cuda/route.cuh"
#include "lib/base/check.h"

namespace drama3 {

constexpr int kMaxGroups = kMaxHidden / kGroup;

// p += codes (16 x 128 block, this lane's four words) times 128 columns of `x` (this lane's column, F16).
__device__ inline void block_product(float (&p)[4], const uint4 (&codes)[4], const f16* x, bool column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint4 low = make_uint4(0, 0, 0, 0), high = low;
    if (column) {
      const uint4* at = reinterpret_cast<const uint4*>(x + half * 64 + lane % 4 * 16);
      low = at[0];
      high = at[1];
    }
    const uint32_t b[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    const uint4& upper = codes[half * 2];
    const uint4& lower = codes[half * 2 + 1];
    const uint32_t top[4] = {upper.x, upper.y, upper.z, upper.w};
    const uint32_t bottom[4] = {lower.x, lower.y, lower.z, lower.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint32_t a[4] = {e4m3x2_to_f16x2(static_cast<uint16_t>(top[j])),
                             e4m3x2_to_f16x2(static_cast<uint16_t>(bottom[j])),
                             e4m3x2_to_f16x2(static_cast<uint16_t>(top[j] >> 16)),
                             e4m3x2_to_f16x2(static_cast<uint16_t>(bottom[j] >> 16))};
      mma16816(p, a, b[2 * j], b[2 * j + 1], f16{});
    }
  }
}

// The sizes that the kernels are made for.
inline void require_sizes(const ExpertArgs& args) {
  const PackedExperts& experts = args.experts;
  INVARIANT(experts.hidden % kGroup == 0 && experts.hidden <= kMaxHidden && experts.ffn % kGroup == 0 &&
                experts.ffn <= kMaxFfn && args.route.top_k <= kMaxTopK,
            "experts of ", experts.hidden, " x ", experts.ffn, ", top ", args.route.top_k);
}

}  // namespace drama3
