// What decoder and encoder carry from call to call, and the scratch rows of one call.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "lib/codec/weights.h"
#include "lib/ops/workspace.h"

namespace drama3::codec {

// How much a decoder or encoder is sized for when it is made.
struct Limits {
  int64_t frames_per_call = 1;
  int64_t frames = 1;  // of one utterance; RoPE tables cover it
};

// Written by the transformer: rings of the keys and values of the last window - 1 rows and of the call's.
struct TransformerState {
  std::vector<KvCache> layers;  // [window - 1 + rows of the largest call, heads * head_dim] codec type
  View position;                // [1] I32: rows seen; advanced at the end of a call
  Rope rope;                    // [rows of an utterance, head_dim / 2] F32; constant
};

// Every tail holds the last input rows that its convolution still needs, and is written by it. All are
// [history, channels in], of the codec type, empty where the history is 0.
struct ResampleState {
  View resample;   // up- or downsampling convolution
  View depthwise;  // the ConvNeXt block's
};
struct BlockState {
  View resample;
  std::array<View, 3> units;  // the dilated convolution of each residual unit
};

struct DecoderState {
  TransformerState post;
  std::vector<ResampleState> upsamples;
  View first;
  std::vector<BlockState> blocks;
  View last;
  std::vector<View> carried;  // all of the above but the RoPE tables
};

struct EncoderState {
  View first;
  std::vector<BlockState> blocks;
  std::vector<TransformerState> transformers;  // one per block; without layers where the block has none
  View last;
  std::vector<ResampleState> downsamples;
  TransformerState pre;
  std::vector<View> carried;  // all of the above but the RoPE tables
};

// Scratch of a transformer, of one call.
struct TransformerScratch {
  View x;         // [rows, width] only with input and output projections
  View normed;    // [rows, width]
  View qkv;       // [rows, 3 * heads * head_dim]
  View attended;  // [rows, heads * head_dim]
  View update;    // [rows, width]
  View gate;      // [rows, ffn]
  View up;        // [rows, ffn]
  AttentionScratch attention;
};

// Flat memory that a call cuts into rows as it goes; nothing in it outlives the call.
struct Scratch {
  std::array<View, 3> rows;  // [elements of the widest stage] the rows and two spare sets
  View wide;                 // [elements] ConvNeXt's inner rows, and a transformer's
  View narrow;               // [elements] rows of a codebook's width
};

// The first rows * cols elements of flat memory as rows.
View shaped(const View& flat, int64_t rows, int64_t cols);

// State at frame 0, of element type `type`.
DecoderState make_state(Workspace& workspace, DType type, const DecoderWeights& part, const Limits& limits);
EncoderState make_state(Workspace& workspace, DType type, const Weights& weights, const Limits& limits);
// Back to frame 0.
void reset(Ops& ops, std::span<const View> carried);

// Scratch of a call of `frames` frames.
Scratch make_decoder_scratch(Workspace& workspace, DType type, const Weights& weights, int64_t frames);
Scratch make_encoder_scratch(Workspace& workspace, DType type, const Weights& weights, int64_t frames);
// Fills all scratch with NaN, for tests: what a call computes must not depend on it.
void spoil(Ops& ops, const Scratch& scratch);

// The transformer's scratch of `rows` rows, cut from flat memory of transformer_elements() elements.
TransformerScratch cut(const View& flat, const Transformer& part, int64_t rows);
int64_t transformer_elements(const Transformer& part, int64_t rows);

}  // namespace drama3::codec
