// The one vocabulary of dimension names, and the small structs of sizes that ops take.
//
//   rows         positions of a call: prompt tokens, audio frames, or codec time steps
//   hidden       width of the residual stream          ffn        width inside a feed-forward block
//   heads        query heads                           kv_heads   key/value heads (heads is a multiple)
//   head_dim     width of one attention head           rotary     dims of a head that RoPE turns
//   key_heads    query/key heads of the delta rule     value_heads  its value heads (a multiple of key_heads)
//   key_dim      width of one of its query/key heads   value_dim  width of one of its value heads
//   conv_taps    taps of its depthwise convolution     experts, top_k  of the mixture
//   frames       46 ms steps of ten codes              codebooks  codes of a frame
//   channels     width of a codec row                  samples    PCM values
#pragma once

#include <cstdint>

namespace drama3 {

// Where the heads of one projection stand inside a row: head h covers columns [h * stride + offset, +
// head_dim).
struct HeadLayout {
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t stride = 0;  // columns from one head to the next; head_dim when the heads are packed
  int64_t offset = 0;
};

// Sizes of one attention: query heads share key/value heads in consecutive groups.
struct AttendDims {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t window = 0;  // a row sees itself and the window-1 rows before it; 0 = all rows before it
  float scale = 1.0f;  // multiplies q.k
};

// Sizes of one gated delta rule.
struct DeltaDims {
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  int64_t conv_taps = 0;

  int64_t keys() const { return key_heads * key_dim; }
  int64_t values() const { return value_heads * value_dim; }
  int64_t channels() const { return 2 * keys() + values(); }  // q, k, v columns, in that order
};

}  // namespace drama3
