// The table of the codec's tensor names and their binding; free sizes are read from the shapes.
#include "lib/codec/weights.h"

#include <cmath>
#include <string>

#include "lib/base/error.h"
#include "lib/codec/binder.h"

namespace drama3::codec {
namespace {

// Top level; "<i>." or "<i>" follows where a name ends in a dot.
constexpr const char* kSemantic = "quantizer.semantic_quantizer.quantizers.0.";
constexpr const char* kResidual = "quantizer.quantizer.quantizers.";
constexpr const char* kPostModule = "quantizer.post_module.";
constexpr const char* kPreModule = "quantizer.pre_module.";
constexpr const char* kUpsample = "quantizer.upsample.";      // + "<i>." + kResample or kResampleBlock
constexpr const char* kDownsample = "quantizer.downsample.";  // the same
constexpr const char* kResample = "0.conv";
constexpr const char* kResampleBlock = "1.";
constexpr const char* kDecoder = "decoder.model.";  // 0: first, 1..n: blocks, then Snake, then last
constexpr const char* kEncoder = "encoder.block.";  // the same
constexpr const char* kConvolution = ".conv";
// In a quantiser.
constexpr const char* kTable = "codebook.weight";
constexpr const char* kProjectIn = "in_proj";
constexpr const char* kProjectOut = "out_proj";
// In a transformer, and in its "layers.<i>.".
constexpr const char* kInput = "input_proj";
constexpr const char* kOutput = "output_proj";
constexpr const char* kLayers = "layers.";
constexpr const char* kFinalNorm = "norm.weight";
constexpr const char* kAttentionNorm = "attention_norm.weight";
constexpr const char* kQkv = "attention.wqkv";
constexpr const char* kAttentionOut = "attention.wo";
constexpr const char* kAttentionGain = "attention_layer_scale.gamma";
constexpr const char* kFfnNorm = "ffn_norm.weight";
constexpr const char* kGate = "feed_forward.w1";
constexpr const char* kUp = "feed_forward.w3";
constexpr const char* kDown = "feed_forward.w2";
constexpr const char* kFfnGain = "ffn_layer_scale.gamma";
// In a ConvNeXt block.
constexpr const char* kDepthwise = "dwconv.conv";
constexpr const char* kNormWeight = "norm.weight";
constexpr const char* kNormBias = "norm.bias";
constexpr const char* kWiden = "pwconv1";
constexpr const char* kNarrow = "pwconv2";
constexpr const char* kGain = "gamma";
// In a decoder block: Snake, transposed convolution, units. In an encoder block: units, Snake, convolution,
// transformer. In a unit: Snake, convolution, Snake, convolution.
constexpr const char* kBlock = ".block.";
// Endings of tensors that a state dict may carry and that are computed here.
constexpr const char* kComputed[] = {"causal_mask", "freqs_cis"};

constexpr int64_t kWideKernel = 7;
constexpr int64_t kEncoderLastKernel = 3;
constexpr int64_t kEncoderHeadDim = 64;
constexpr int64_t kDilations[] = {1, 3, 9};
constexpr float kNormEps = 1e-5f;
constexpr int64_t kLongestFrame = 1 << 20;  // samples

struct Attention {
  int64_t head_dim;
  int64_t window;
};

TransformerLayer bind_layer(const Binder& bind, const Transformer& sizes) {
  const int64_t width = sizes.width, inner = sizes.attend.heads * sizes.attend.head_dim;
  return {.attention_norm = bind.norm(kAttentionNorm, width, kNormEps),
          .qkv = bind.linear(kQkv, 3 * inner, width, false),
          .out = bind.linear(kAttentionOut, width, inner, false),
          .attention_gain = bind.vector(kAttentionGain, width),
          .ffn_norm = bind.norm(kFfnNorm, width, kNormEps),
          .gate = bind.linear(kGate, sizes.ffn, width, false),
          .up = bind.linear(kUp, sizes.ffn, width, false),
          .down = bind.linear(kDown, width, sizes.ffn, false),
          .ffn_gain = bind.vector(kFfnGain, width)};
}

Transformer bind_transformer(const Binder& bind, int64_t latent, const Attention& attention) {
  const Binder first = bind.inside(join(kLayers, "0."));
  const std::string qkv_name = join(kQkv, ".weight");
  const Shape qkv = first.shape(qkv_name, 2);
  const int64_t head_dim = attention.head_dim;
  if (qkv[0] % (3 * head_dim) != 0) {
    fail("codec tensor ", first.prefix(), qkv_name, ": expected rows for q, k and v of heads ", head_dim,
         " wide, got ", qkv.text());
  }
  const int64_t heads = qkv[0] / (3 * head_dim);
  Transformer part;
  part.width = qkv[1];
  part.ffn = first.shape(join(kGate, ".weight"), 2)[0];
  part.attend = {.heads = heads,
                 .kv_heads = heads,
                 .head_dim = head_dim,
                 .window = attention.window,
                 .scale = 1.0f / std::sqrt(static_cast<float>(head_dim))};
  if (part.width != latent || bind.has(join(kInput, ".weight"))) {
    part.input = bind.linear(kInput, part.width, latent, true);
    part.output = bind.linear(kOutput, latent, part.width, true);
  }
  for (int i = 0; bind.has(join(kLayers, i, ".", qkv_name)); ++i) {
    part.layers.push_back(bind_layer(bind.inside(join(kLayers, i, ".")), part));
  }
  part.norm = bind.norm(kFinalNorm, part.width, kNormEps);
  return part;
}

ConvNext bind_conv_next(const Binder& bind, int64_t latent) {
  return {.depthwise =
              bind.conv(kDepthwise, {.in = latent, .out = latent, .kernel = kWideKernel, .depthwise = true}),
          .norm_weight = bind.vector(kNormWeight, latent),
          .norm_bias = bind.vector(kNormBias, latent),
          .up = bind.linear(kWiden, 4 * latent, latent, true),
          .down = bind.linear(kNarrow, latent, 4 * latent, true),
          .gain = bind.vector(kGain, latent)};
}

// Units at block indices first .. first+2.
ResidualUnits bind_units(const Binder& block, int first, int64_t channels) {
  ResidualUnits units;
  for (int i = 0; i < 3; ++i) {
    const Binder bind = block.inside(join(first + i, kBlock));
    units[static_cast<size_t>(i)] = {
        .snake0 = bind.snake("0", channels),
        .conv0 =
            bind.conv(join(1, kConvolution),
                      {.in = channels, .out = channels, .kernel = kWideKernel, .dilation = kDilations[i]}),
        .snake1 = bind.snake("2", channels),
        .conv1 = bind.conv(join(3, kConvolution), {.in = channels, .out = channels})};
  }
  return units;
}

// Stride of a block's resampling convolution, whose kernel is twice as wide.
int64_t stride_of(const Binder& bind, const std::string& module, const Shape& shape) {
  if (shape[2] % 2 != 0) {
    fail("codec convolution ", bind.prefix(), module, ": expected an even kernel (twice the stride), got ",
         shape.text());
  }
  return shape[2] / 2;
}

DecoderBlock bind_decoder_block(const Binder& bind, int64_t channels) {
  const std::string module = join(1, kConvolution);
  const Shape shape = bind.conv_shape(module, 0);
  const int64_t stride = stride_of(bind, module, shape);
  return {.snake = bind.snake("0", channels),
          .up = bind.conv_transpose(module,
                                    {.in = channels, .out = shape[1], .kernel = shape[2], .stride = stride}),
          .units = bind_units(bind, 2, shape[1])};
}

EncoderBlock bind_encoder_block(const Binder& bind, int64_t channels, int64_t window) {
  const std::string module = join(4, kConvolution);
  const Shape shape = bind.conv_shape(module, 0);
  const int64_t stride = stride_of(bind, module, shape);
  EncoderBlock block{
      .units = bind_units(bind, 0, channels),
      .snake = bind.snake("3", channels),
      .down = bind.conv(module, {.in = channels, .out = shape[0], .kernel = shape[2], .stride = stride}),
      .transformer = {}};
  const Binder transformer = bind.inside("5.");
  if (transformer.has(kFinalNorm)) {
    block.transformer = bind_transformer(transformer, shape[0], {kEncoderHeadDim, window});
  }
  return block;
}

DecoderWeights bind_decoder(const Binder& root, int64_t latent, const Config& config) {
  DecoderWeights part;
  part.post = bind_transformer(root.inside(kPostModule), latent, {config.head_dim, config.window_size});
  for (int i = 0; root.has(join(kUpsample, i, ".", kResample, ".weight")); ++i) {
    const Binder bind = root.inside(join(kUpsample, i, "."));
    const int64_t factor = bind.conv_shape(kResample, 0)[2];
    part.upsamples.push_back(
        {.up = bind.conv_transpose(kResample,
                                   {.in = latent, .out = latent, .kernel = factor, .stride = factor}),
         .block = bind_conv_next(bind.inside(kResampleBlock), latent)});
  }
  const Binder bind = root.inside(kDecoder);
  int64_t channels = bind.conv_shape(join(0, kConvolution), kWideKernel)[0];
  part.first = bind.conv(join(0, kConvolution), {.in = latent, .out = channels, .kernel = kWideKernel});
  int i = 1;
  for (; bind.has(join(i, kBlock, "0.alpha")); ++i) {
    part.blocks.push_back(bind_decoder_block(bind.inside(join(i, kBlock)), channels));
    channels = part.blocks.back().up.out;
  }
  part.snake = bind.snake(join(i), channels);
  part.last = bind.conv(join(i + 1, kConvolution), {.in = channels, .out = 1, .kernel = kWideKernel});
  return part;
}

EncoderWeights bind_encoder(const Binder& root, int64_t latent, const Config& config) {
  EncoderWeights part;
  const Binder bind = root.inside(kEncoder);
  int64_t channels = bind.conv_shape(join(0, kConvolution), kWideKernel)[0];
  part.first = bind.conv(join(0, kConvolution), {.in = 1, .out = channels, .kernel = kWideKernel});
  int i = 1;
  for (; bind.has(join(i, kBlock, "0.block.0.alpha")); ++i) {
    part.blocks.push_back(
        bind_encoder_block(bind.inside(join(i, kBlock)), channels, config.encoder_window_size));
    channels = part.blocks.back().down.out;
  }
  part.snake = bind.snake(join(i), channels);
  part.last =
      bind.conv(join(i + 1, kConvolution), {.in = channels, .out = latent, .kernel = kEncoderLastKernel});
  for (int k = 0; root.has(join(kDownsample, k, ".", kResample, ".weight")); ++k) {
    const Binder down = root.inside(join(kDownsample, k, "."));
    const int64_t factor = down.conv_shape(kResample, 0)[2];
    part.downsamples.push_back(
        {.down = down.conv(kResample, {.in = latent, .out = latent, .kernel = factor, .stride = factor}),
         .block = bind_conv_next(down.inside(kResampleBlock), latent)});
  }
  part.pre = bind_transformer(root.inside(kPreModule), latent, {config.head_dim, config.window_size});
  std::vector<float> minus_one(static_cast<size_t>(latent), -1.0f);
  part.minus_one = root.ops().prepare_vector(View(minus_one.data(), DType::kF32, Shape{latent}));
  return part;
}

Quantizer bind_quantizer(const Binder& bind, int64_t latent, Parts parts) {
  const Shape shape = bind.shape(kTable, 2);
  const int64_t width = shape[1];
  Quantizer quantizer{.table = bind.ops().prepare_table(bind.stored(kTable, shape)), .in = {}, .out = {}};
  quantizer.out = bind.conv(kProjectOut, {.in = width, .out = latent});
  if (parts == Parts::kDecoderAndEncoder) quantizer.in = bind.conv(kProjectIn, {.in = latent, .out = width});
  return quantizer;
}

// samples * stride, which must stay a frame of audio.
int64_t longer_frame(int64_t samples, int64_t stride) {
  if (samples > kLongestFrame / stride) {
    fail("codec strides: expected at most ", kLongestFrame, " samples a frame, got ", samples, " times ",
         stride);
  }
  return samples * stride;
}

int64_t samples_of(const DecoderWeights& decoder) {
  int64_t samples = 1;
  for (const Upsample& stage : decoder.upsamples) samples = longer_frame(samples, stage.up.stride);
  for (const DecoderBlock& block : decoder.blocks) samples = longer_frame(samples, block.up.stride);
  return samples;
}

int64_t samples_of(const EncoderWeights& encoder) {
  int64_t samples = 1;
  for (const EncoderBlock& block : encoder.blocks) samples = longer_frame(samples, block.down.stride);
  for (const Downsample& stage : encoder.downsamples) samples = longer_frame(samples, stage.down.stride);
  return samples;
}

}  // namespace

Weights load_weights(Ops& ops, WeightSource& source, const Config& config, Parts parts) {
  const Binder root(ops, source);
  Weights weights;
  weights.latent = root.conv_shape(join(kSemantic, kProjectOut), 1)[0];
  weights.quantizers.push_back(bind_quantizer(root.inside(kSemantic), weights.latent, parts));
  for (int k = 0; root.has(join(kResidual, k, ".", kTable)); ++k) {
    weights.quantizers.push_back(bind_quantizer(root.inside(join(kResidual, k, ".")), weights.latent, parts));
  }
  weights.decoder = bind_decoder(root, weights.latent, config);
  weights.samples_per_frame = samples_of(weights.decoder);
  if (parts == Parts::kDecoder) return weights;
  weights.encoder = bind_encoder(root, weights.latent, config);
  if (samples_of(*weights.encoder) != weights.samples_per_frame) {
    fail("codec encoder: expected strides that make a frame of ", weights.samples_per_frame,
         " samples, as the decoder does, got ", samples_of(*weights.encoder));
  }
  return weights;
}

UnusedNames unused_names(const Weights& weights) {
  UnusedNames names{.prefixes = {}, .suffixes = {std::begin(kComputed), std::end(kComputed)}};
  if (weights.encoder) return names;
  names.prefixes = {kEncoder, kDownsample, kPreModule, join(kSemantic, kProjectIn, ".")};
  for (int64_t k = 0; k + 1 < weights.codebooks(); ++k) {
    names.prefixes.push_back(join(kResidual, k, ".", kProjectIn, "."));
  }
  return names;
}

int64_t count_out_of_range(const Weights& weights, const View& codes) {
  int64_t count = 0;
  for (int64_t frame = 0; frame < codes.rows(); ++frame) {
    for (int64_t k = 0; k < codes.cols(); ++k) {
      const int32_t code = codes.row<int32_t>(frame)[k];
      count += code < 0 || code >= weights.quantizers[static_cast<size_t>(k)].table.rows();
    }
  }
  return count;
}

}  // namespace drama3::codec
