// The tiny codec, its reference data, and runs of decoder and encoder for the tests of this folder.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/codec/decode.h"
#include "lib/codec/encode.h"
#include "lib/store/codec_file.h"
#include "lib/store/tensor_file.h"
#include "lib/tensor/stored_value.h"

namespace drama3 {

inline const codec::Config kTinyConfig{.window_size = 8, .head_dim = 32, .encoder_window_size = 16};

inline std::string golden_path(const std::string& name) {
  return std::string(DRAMA3_TEST_DATA) + "/golden/" + name;
}

// The tiny codec's weights, decoder and encoder, on a backend that outlives them.
struct TinyCodec {
  explicit TinyCodec(Ops& ops)
      : file(golden_path("tiny/codec.pth")),
        weights(codec::load_weights(ops, file, kTinyConfig, codec::Parts::kDecoderAndEncoder)) {}
  CodecFile file;
  codec::Weights weights;
};

// [channels, time] of the reference as rows [time, channels].
inline std::vector<float> reference_rows(TensorFile& file, const std::string& name) {
  const View stored = file.tensor_named(name);
  std::vector<float> rows;
  for (int64_t t = 0; t < stored.cols(); ++t) {
    for (int64_t c = 0; c < stored.rows(); ++c) rows.push_back(stored_value(stored, c, t));
  }
  return rows;
}

// [codebooks, frames] I32 of the reference as rows [frames, codebooks].
inline std::vector<int32_t> reference_codes(TensorFile& file, const std::string& name) {
  const View stored = file.tensor_named(name);
  std::vector<int32_t> rows;
  for (int64_t t = 0; t < stored.cols(); ++t) {
    for (int64_t k = 0; k < stored.rows(); ++k) rows.push_back(stored.row<int32_t>(k)[t]);
  }
  return rows;
}

// ||a - b|| / ||b||, in double.
inline double relative_l2(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double difference = 0.0, norm = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    norm += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(difference / norm);
}

using Stages = std::map<std::string, std::vector<float>>;

// An observer that keeps all rows of every stage, call after call.
inline codec::Observer collect(Ops& ops, Stages& stages) {
  return [&ops, &stages](std::string_view name, const View& rows) {
    std::vector<float> values(static_cast<size_t>(rows.elements()));
    ops.download(View(values.data(), DType::kF32, rows.shape), rows);
    std::vector<float>& all = stages[std::string(name)];
    all.insert(all.end(), values.begin(), values.end());
  };
}

// PCM of `codes` decoded in calls of chunks[0], chunks[1], ... frames; scratch and output are NaN before
// each.
inline std::vector<float> decode_in_chunks(Ops& ops, codec::Decoder& decoder, const codec::Weights& weights,
                                           const std::vector<int32_t>& codes,
                                           const std::vector<int64_t>& chunks) {
  std::vector<float> pcm;
  int64_t frame = 0;
  for (int64_t count : chunks) {
    const Shape code_shape{count, weights.codebooks()};
    const Buffer in = ops.allocate(DType::kI32, code_shape);
    const Buffer out = ops.allocate(ops.codec_type(), Shape{count * weights.samples_per_frame});
    ops.upload(in.view, View(const_cast<int32_t*>(codes.data()) + frame * weights.codebooks(), DType::kI32,
                             code_shape));
    ops.fill(out.view, 0xff);
    decoder.spoil_scratch();
    decoder.decode(out.view, in.view);
    std::vector<float> samples(static_cast<size_t>(out.view.elements()));
    ops.download(View(samples.data(), DType::kF32, out.view.shape), out.view);
    pcm.insert(pcm.end(), samples.begin(), samples.end());
    frame += count;
  }
  return pcm;
}

// Codes of `wav`, whole frames, encoded in calls of chunks[0], chunks[1], ... frames; scratch is NaN before
// each.
inline std::vector<int32_t> encode_in_chunks(Ops& ops, codec::Encoder& encoder, const codec::Weights& weights,
                                             const std::vector<float>& wav,
                                             const std::vector<int64_t>& chunks) {
  std::vector<int32_t> codes;
  const float* at = wav.data();
  for (int64_t count : chunks) {
    const Shape samples{count * weights.samples_per_frame, 1};
    const Buffer in = ops.allocate(DType::kF32, samples);
    const Buffer out = ops.allocate(DType::kI32, Shape{count, weights.codebooks()});
    ops.upload(in.view, View(const_cast<float*>(at), DType::kF32, samples));
    encoder.spoil_scratch();
    encoder.encode(out.view, in.view);
    std::vector<int32_t> rows(static_cast<size_t>(out.view.elements()));
    ops.download(View(rows.data(), DType::kI32, out.view.shape), out.view);
    codes.insert(codes.end(), rows.begin(), rows.end());
    at += samples.elements();
  }
  return codes;
}

}  // namespace drama3
