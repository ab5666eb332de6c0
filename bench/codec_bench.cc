// Time of the CPU backend to decode codec frames: a small voice and full size, by threads and frames per
// call.
#include <benchmark/benchmark.h>

#include <memory>

#include "kernels/cpu/cpu_ops.h"
#include "lib/codec/decode.h"
#include "lib/codec/encode.h"
#include "tests/codec/random_codec.h"

namespace drama3 {
namespace {

CodecSizes small_voice() {
  CodecSizes sizes;  // latent 128, decoder 256
  sizes.encoder_channels = 0;
  return sizes;
}

CodecSizes full_size() {
  CodecSizes sizes;
  sizes.latent = sizes.transformer_width = sizes.inner = 1024;
  sizes.entries = 1024;
  sizes.layers = 8;
  sizes.ffn = 3072;
  sizes.decoder_channels = 1536;
  sizes.encoder_channels = 0;
  return sizes;
}

// Arguments: threads, frames per call.
void decode(benchmark::State& state, const CodecSizes& sizes) {
  const int64_t frames = state.range(1);
  constexpr int64_t kUtterance = 1 << 13;
  RandomCodec source(sizes, 1);
  CpuOps ops(static_cast<int>(state.range(0)));
  const auto weights =
      codec::load_weights(ops, source, {.window_size = 32, .head_dim = 64}, codec::Parts::kDecoder);
  codec::Decoder decoder(ops, weights, {.frames_per_call = frames, .frames = kUtterance});
  const Buffer codes = ops.allocate(DType::kI32, Shape{frames, weights.codebooks()});
  const Buffer pcm = ops.allocate(ops.codec_type(), Shape{frames * weights.samples_per_frame});
  for (auto step : state) {
    (void)step;
    if (decoder.frames_done() + frames > kUtterance) decoder.reset();
    decoder.decode(pcm.view, codes.view);
  }
  state.counters["per_frame"] = benchmark::Counter(static_cast<double>(state.iterations() * frames),
                                                   benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// Argument: threads. One second of audio at a time.
void encode_small_voice(benchmark::State& state) {
  CodecSizes sizes;
  RandomCodec source(sizes, 1);
  CpuOps ops(static_cast<int>(state.range(0)));
  const auto weights =
      codec::load_weights(ops, source, {.window_size = 32, .head_dim = 64}, codec::Parts::kDecoderAndEncoder);
  constexpr int64_t kFrames = 22;
  const std::vector<float> pcm(static_cast<size_t>(kFrames * weights.samples_per_frame), 0.25f);
  for (auto step : state) {
    (void)step;
    benchmark::DoNotOptimize(codec::encode_recording(ops, weights, pcm));
  }
  state.counters["per_frame"] = benchmark::Counter(static_cast<double>(state.iterations() * kFrames),
                                                   benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void small_voice_codec(benchmark::State& state) { decode(state, small_voice()); }
void full_size_codec(benchmark::State& state) { decode(state, full_size()); }

BENCHMARK(small_voice_codec)->ArgsProduct({{1, 2}, {1, 8}})->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(full_size_codec)->Args({2, 1})->Args({2, 8})->UseRealTime()->Unit(benchmark::kMillisecond);

BENCHMARK(encode_small_voice)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace drama3

BENCHMARK_MAIN();
