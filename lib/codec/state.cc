// Sizes of the codec's state and scratch.
#include "lib/codec/state.h"

#include <algorithm>

#include "lib/ops/rope.h"

namespace drama3::codec {
namespace {

constexpr float kRopeTheta = 10000.0f;
constexpr int64_t kCutElements = 32;  // cuts of flat memory start at multiples of this

int64_t rounded_up(int64_t elements) { return (elements + kCutElements - 1) / kCutElements * kCutElements; }

// Takes the memory of a state and lists it.
class Taker {
 public:
  Taker(Workspace& workspace, DType type, std::vector<View>& carried)
      : workspace_(workspace), type_(type), carried_(carried) {}

  View take(const Shape& shape) { return take(type_, shape); }
  View take(DType type, const Shape& shape) {
    if (shape.elements() == 0) return {};
    carried_.push_back(workspace_.take(type, shape));
    return carried_.back();
  }
  View tail(const Conv& conv) { return take(Shape{conv.history(), conv.in}); }
  View tail(const ConvTranspose& conv) { return take(Shape{conv.history(), conv.in}); }

  std::array<View, 3> tails(const ResidualUnits& units) {
    return {tail(units[0].conv0), tail(units[1].conv0), tail(units[2].conv0)};
  }

  // For calls of at most `rows` rows and utterances of at most `positions`.
  TransformerState transformer(const Transformer& part, int64_t rows, int64_t positions) {
    TransformerState state;
    const Shape ring{part.attend.window - 1 + rows, part.attend.heads * part.attend.head_dim};
    for (size_t i = 0; i < part.layers.size(); ++i) state.layers.push_back({take(ring), take(ring)});
    state.position = take(DType::kI32, Shape{1});
    state.rope = make_rope(workspace_, {.positions = positions,
                                        .rotary = part.attend.head_dim,
                                        .theta = kRopeTheta,
                                        .interleaved = true,
                                        .round_to_bf16 = true});
    return state;
  }

 private:
  Workspace& workspace_;
  DType type_;
  std::vector<View>& carried_;
};

// The most elements that a stage has, and that a transformer or ConvNeXt block needs inside.
struct Extent {
  int64_t rows = 0;
  int64_t wide = 0;

  void stage(int64_t count, int64_t channels) { rows = std::max(rows, count * channels); }
  void transformer(const Transformer& part, int64_t count) {
    wide = std::max(wide, transformer_elements(part, count));
  }
  void conv_next(int64_t count, int64_t latent) { wide = std::max(wide, count * 4 * latent); }
};

Scratch take_scratch(Workspace& workspace, DType type, const Weights& weights, const Extent& extent,
                     int64_t frames) {
  Scratch scratch;
  for (View& rows : scratch.rows) rows = workspace.take(type, Shape{extent.rows});
  scratch.wide = workspace.take(type, Shape{extent.wide});
  int64_t width = 0;
  for (const Quantizer& quantizer : weights.quantizers) width = std::max(width, quantizer.table.cols());
  scratch.narrow = workspace.take(type, Shape{frames * width});
  return scratch;
}

}  // namespace

View shaped(const View& flat, int64_t rows, int64_t cols) {
  INVARIANT(rows * cols <= flat.elements(), rows, " x ", cols, " of ", flat.elements());
  View view = flat;
  view.shape = Shape{rows, cols};
  view.row_stride = cols;
  return view;
}

int64_t transformer_elements(const Transformer& part, int64_t rows) {
  const int64_t inner = part.attend.heads * part.attend.head_dim;
  int64_t elements = 0;
  for (int64_t cols :
       {part.width, part.width, 3 * inner, inner, part.width, part.ffn, part.ffn, inner, inner}) {
    elements += rounded_up(rows * cols);
  }
  return elements;
}

TransformerScratch cut(const View& flat, const Transformer& part, int64_t rows) {
  const int64_t inner = part.attend.heads * part.attend.head_dim;
  int64_t begin = 0;
  const auto next = [&](int64_t cols) {
    const int64_t elements = rounded_up(rows * cols);
    const View piece = shaped(shaped(flat, 1, flat.elements()).cols_from(begin, elements), rows, cols);
    begin += elements;
    return piece;
  };
  TransformerScratch scratch;
  scratch.x = next(part.width);
  scratch.normed = next(part.width);
  scratch.qkv = next(3 * inner);
  scratch.attended = next(inner);
  scratch.update = next(part.width);
  scratch.gate = next(part.ffn);
  scratch.up = next(part.ffn);
  scratch.attention = {.query = next(inner), .key = next(inner)};
  return scratch;
}

DecoderState make_state(Workspace& workspace, DType type, const DecoderWeights& part, const Limits& limits) {
  DecoderState state;
  Taker taker(workspace, type, state.carried);
  state.post = taker.transformer(part.post, limits.frames_per_call, limits.frames);
  for (const Upsample& stage : part.upsamples) {
    state.upsamples.push_back({taker.tail(stage.up), taker.tail(stage.block.depthwise)});
  }
  state.first = taker.tail(part.first);
  for (const DecoderBlock& block : part.blocks) {
    state.blocks.push_back({taker.tail(block.up), taker.tails(block.units)});
  }
  state.last = taker.tail(part.last);
  return state;
}

EncoderState make_state(Workspace& workspace, DType type, const Weights& weights, const Limits& limits) {
  const EncoderWeights& part = *weights.encoder;
  EncoderState state;
  Taker taker(workspace, type, state.carried);
  int64_t columns = weights.samples_per_frame;  // of a frame
  state.first = taker.tail(part.first);
  for (const EncoderBlock& block : part.blocks) {
    columns /= block.down.stride;
    state.blocks.push_back({taker.tail(block.down), taker.tails(block.units)});
    state.transformers.emplace_back();
    if (!block.transformer) continue;
    state.transformers.back() =
        taker.transformer(*block.transformer, limits.frames_per_call * columns, limits.frames * columns);
  }
  state.last = taker.tail(part.last);
  for (const Downsample& stage : part.downsamples) {
    state.downsamples.push_back({taker.tail(stage.down), taker.tail(stage.block.depthwise)});
  }
  state.pre = taker.transformer(part.pre, limits.frames_per_call, limits.frames);
  return state;
}

void reset(Ops& ops, std::span<const View> carried) {
  for (const View& view : carried) ops.fill(view, 0);
}

void spoil(Ops& ops, const Scratch& scratch) {
  for (const View& rows : scratch.rows) ops.fill(rows, 0xff);
  ops.fill(scratch.wide, 0xff);
  ops.fill(scratch.narrow, 0xff);
}

Scratch make_decoder_scratch(Workspace& workspace, DType type, const Weights& weights, int64_t frames) {
  const DecoderWeights& part = weights.decoder;
  Extent extent;
  int64_t rows = frames;
  extent.stage(rows, weights.latent);
  extent.transformer(part.post, rows);
  for (const Upsample& stage : part.upsamples) {
    rows *= stage.up.stride;
    extent.stage(rows, weights.latent);
    extent.conv_next(rows, weights.latent);
  }
  extent.stage(rows, part.first.out);
  for (const DecoderBlock& block : part.blocks) {
    rows *= block.up.stride;
    extent.stage(rows, block.up.out);
  }
  return take_scratch(workspace, type, weights, extent, frames);
}

Scratch make_encoder_scratch(Workspace& workspace, DType type, const Weights& weights, int64_t frames) {
  const EncoderWeights& part = *weights.encoder;
  Extent extent;
  int64_t rows = frames * weights.samples_per_frame;
  extent.stage(rows, part.first.out);
  for (const EncoderBlock& block : part.blocks) {
    rows /= block.down.stride;
    extent.stage(rows, block.down.out);
    if (block.transformer) extent.transformer(*block.transformer, rows);
  }
  extent.stage(rows, weights.latent);
  for (const Downsample& stage : part.downsamples) {
    rows /= stage.down.stride;
    extent.stage(rows, weights.latent);
    extent.conv_next(rows, weights.latent);
  }
  extent.transformer(part.pre, rows);
  return take_scratch(workspace, type, weights, extent, frames);
}

}  // namespace drama3::codec
