// The codec's weights as handles of a backend, bound by name and checked against each other's shapes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "lib/codec/config.h"
#include "lib/ops/ops.h"

namespace drama3::codec {

// One codebook and the projections around it.
struct Quantizer {
  View table;  // [entries, width] stored type
  Conv in;     // latent -> width, kernel 1; only with the encoder
  Conv out;    // width -> latent, kernel 1
};

struct TransformerLayer {
  Norm attention_norm;  // [width]
  Linear qkv;           // [3 * heads * head_dim, width]: q, k, v rows in that order
  Linear out;           // [width, heads * head_dim]
  View attention_gain;  // [width] F32
  Norm ffn_norm;        // [width]
  Linear gate;          // [ffn, width]
  Linear up;            // [ffn, width]
  Linear down;          // [width, ffn]
  View ffn_gain;        // [width] F32
};

// A causal transformer over time in which a row sees the last attend.window rows.
struct Transformer {
  int64_t width = 0;
  int64_t ffn = 0;
  AttendDims attend;
  std::optional<Linear> input;   // [width, latent], when the widths differ
  std::optional<Linear> output;  // [latent, width], when the widths differ
  std::vector<TransformerLayer> layers;
  Norm norm;  // [width]
};

// Depthwise convolution, layer norm, and a feed-forward of four times the width, with a gain per channel.
struct ConvNext {
  Conv depthwise;    // latent, kernel 7
  View norm_weight;  // [latent] F32
  View norm_bias;    // [latent] F32
  Linear up;         // [4 * latent, latent]
  Linear down;       // [latent, 4 * latent]
  View gain;         // [latent] F32
};

struct Upsample {
  ConvTranspose up;  // latent -> latent, kernel = stride
  ConvNext block;
};

struct Downsample {
  Conv down;  // latent -> latent, kernel = stride
  ConvNext block;
};

using ResidualUnits = std::array<ResidualUnit, 3>;  // dilations 1, 3, 9

struct DecoderBlock {
  Snake snake;       // [channels]
  ConvTranspose up;  // channels -> narrower, kernel = 2 * stride
  ResidualUnits units;
};

struct EncoderBlock {
  ResidualUnits units;
  Snake snake;  // [channels]
  Conv down;    // channels -> wider, kernel = 2 * stride
  std::optional<Transformer> transformer;
};

struct DecoderWeights {
  Transformer post;
  std::vector<Upsample> upsamples;
  Conv first;  // latent -> channels, kernel 7
  std::vector<DecoderBlock> blocks;
  Snake snake;  // [channels]
  Conv last;    // channels -> 1, kernel 7
};

struct EncoderWeights {
  Conv first;  // 1 -> channels, kernel 7
  std::vector<EncoderBlock> blocks;
  Snake snake;  // [channels]
  Conv last;    // channels -> latent, kernel 3
  std::vector<Downsample> downsamples;
  Transformer pre;
  View minus_one;  // [latent] F32, every value -1: takes an entry off the residual
};

struct Weights {
  int64_t latent = 0;
  int64_t samples_per_frame = 0;
  std::vector<Quantizer> quantizers;  // the semantic one, then the residual ones
  DecoderWeights decoder;
  std::optional<EncoderWeights> encoder;

  int64_t codebooks() const { return static_cast<int64_t>(quantizers.size()); }
};

enum class Parts : uint8_t { kDecoder, kDecoderAndEncoder };

// Binds every tensor of the parts and prepares it on `ops`. Error, naming tensor, expected and got, for a
// tensor that is absent or whose shape contradicts another's.
Weights load_weights(Ops& ops, WeightSource& source, const Config& config, Parts parts);

// Tensors of codec.pth that are left alone on purpose: what is computed here, and the encoder's when only the
// decoder is loaded.
struct UnusedNames {
  std::vector<std::string> prefixes;
  std::vector<std::string> suffixes;
};
UnusedNames unused_names(const Weights& weights);

// How many of these codes [frames, codebooks] I32 on the host lie outside their codebook; decoding clamps
// them.
int64_t count_out_of_range(const Weights& weights, const View& codes);

}  // namespace drama3::codec
