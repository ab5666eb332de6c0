// Times frames of the full-size synthetic model on a CUDA device, by stage, whole, and with the codec, and
// prints one JSON document. Options: --layers N of the backbone, --no-overlap, --no-fuse, --no-graphs,
// --profile.
#include <cuda_profiler_api.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "lib/engine/codec_vocoder.h"
#include "lib/engine/model_generator.h"
#include "lib/ops/workspace.h"
#include "tests/cuda/synthetic.h"
#include "tests/synthetic/checkpoint_writer.h"

using namespace drama3;
using namespace drama3::cuda_test;

namespace {

constexpr int kContext = 300;
constexpr int kFrames = 200;     // timed
constexpr int kAllFrames = 500;  // over which memory must not grow
constexpr int kReplays = 30;
constexpr double kFrameSeconds = 2048.0 / 44100.0;
constexpr uint64_t kHashStart = 1469598103934665603u;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

uint64_t hashed(uint64_t hash, uint32_t value) { return (hash ^ value) * 1099511628211u; }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Stage {
  std::string name;
  double bytes = 0.0;  // of weights and state that one replay must read
  std::function<void()> step;
};

struct Bench {
  std::unique_ptr<Ops> ops;
  SyntheticSource source;
  backbone::Config backbone_config;
  tower::Config tower_config = full_tower();
  backbone::Weights backbone;
  tower::Weights tower;
  EmbedTables tables;
  int key = 100;

  Bench(const CudaOptions& options, int layers)
      : ops(make_cuda_ops(options)), backbone_config(full_backbone(layers)) {
    backbone = backbone::load_weights(*ops, source, backbone_config);
    tower = tower::load_weights(*ops, source, tower_config);
    tables = {.text = backbone.embedding,
              .codes = tower.code_embeddings,
              .code_vocabulary = tower_config.code_vocabulary,
              .semantic_start = backbone_config.semantic_start,
              .semantic_count = backbone_config.semantic_count};
  }

  // Median seconds of one replay, and its launches.
  double seconds(const std::function<void()>& step, int64_t* launches) {
    const int step_key = key++;
    ops->run_step(step_key, step);
    const int64_t before = cuda_counters(*ops).launches;
    ops->run_step(step_key, step);
    ops->synchronize();
    *launches = cuda_counters(*ops).launches - before;
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) {
      const double begin = now();
      for (int n = 0; n < kReplays; ++n) ops->run_step(step_key, step);
      ops->synchronize();
      times.push_back((now() - begin) / kReplays);
    }
    return median(times);
  }
};

// A request of kFrames frames from its prompt to its last sample.
struct Speech {
  int64_t frames = 0;
  double seconds = 0.0;
  double first_audio = 0.0;  // seconds
  uint64_t hash = kHashStart;

  double rtf() const { return seconds / (static_cast<double>(frames) * kFrameSeconds); }
};

Speech speak(ModelGenerator& generator, Vocoder& vocoder, const PromptRows& prompt) {
  Session session(generator, vocoder, kFrames);
  std::vector<float> pcm(static_cast<size_t>(kFrames * vocoder.samples_per_frame()));
  Speech speech;
  const double begin = now();
  const SessionResult result =
      session.run({.prompt = prompt, .sampling = {.seed = 5}, .max_frames = kFrames}, pcm, [&](int64_t) {
        if (speech.first_audio == 0.0) speech.first_audio = now() - begin;
        return true;
      });
  speech.seconds = now() - begin;
  speech.frames = result.frames;
  for (float sample : pcm) speech.hash = hashed(speech.hash, std::bit_cast<uint32_t>(sample));
  return speech;
}

double linear_bytes(const Linear& weight) { return static_cast<double>(weight.out * weight.in * 2); }

// The stages of a frame, each over all its layers, on scratch of its own.
std::vector<Stage> stages_of(Bench& bench, Workspace& workspace) {
  Ops& ops = *bench.ops;
  const backbone::Config& config = bench.backbone_config;
  auto state = std::make_shared<backbone::State>(backbone::make_state(workspace, config, 1024));
  auto scratch = std::make_shared<backbone::Scratch>(
      backbone::first_rows(backbone::make_scratch(workspace, config, bench.backbone.layers.front().moe), 1));
  const int32_t position = kContext;
  ops.upload(state->position, View(const_cast<int32_t*>(&position), DType::kI32, Shape{1}));
  auto deltas = std::make_shared<std::vector<size_t>>(), attentions = std::make_shared<std::vector<size_t>>();
  for (size_t i = 0; i < config.layers.size(); ++i) {
    (config.layers[i] == backbone::Mixer::kDelta ? deltas : attentions)->push_back(i);
  }
  const double count = static_cast<double>(deltas->size());
  const auto& layers = bench.backbone.layers;
  const auto& delta = layers[0].delta;
  const auto& moe = layers[0].moe;
  std::vector<Stage> stages;
  stages.push_back(
      {"delta projections",
       count * (linear_bytes(delta.qkv) + linear_bytes(delta.z) + 2 * linear_bytes(delta.a)),
       [=, &ops, &layers] {
         for (size_t i : *deltas) {
           const auto& w = layers[i].delta;
           const Projection outs[] = {
               {scratch->qkv, &w.qkv}, {scratch->z, &w.z}, {scratch->b, &w.b}, {scratch->a, &w.a}};
           ops.project(outs, scratch->normed);
         }
       }});
  stages.push_back({"delta mixers", count * 2.0 * (2 << 20), [=, &ops, &layers, &config] {
                      for (size_t i : *deltas) {
                        const auto& w = layers[i].delta;
                        const DeltaMix mix{.qkv = scratch->qkv,
                                           .z = scratch->z,
                                           .b = scratch->b,
                                           .a = scratch->a,
                                           .conv = w.conv,
                                           .a_log = w.a_log,
                                           .dt_bias = w.dt_bias,
                                           .norm = w.norm,
                                           .dims = config.delta};
                        ops.delta_mix(scratch->mixed, mix, state->layers[i].delta, scratch->delta);
                      }
                    }});
  stages.push_back({"delta out", count * linear_bytes(delta.out), [=, &ops, &layers] {
                      for (size_t i : *deltas)
                        ops.linear(scratch->update, scratch->mixed, layers[i].delta.out);
                    }});
  const double moe_bytes =
      static_cast<double>(config.layers.size()) *
      (linear_bytes(moe.router) + 3.0 * linear_bytes(moe.shared_gate_proj) +
       static_cast<double>(config.top_k) * 3.0 * static_cast<double>(config.hidden * config.expert_ffn));
  stages.push_back({"mixtures", moe_bytes, [=, &ops, &layers] {
                      for (const auto& layer : layers) {
                        ops.moe(scratch->update, scratch->normed, layer.moe, {}, scratch->moe);
                        ops.add_rms_norm(scratch->normed, scratch->x, scratch->update, layer.input_norm);
                      }
                    }});
  stages.push_back({"candidate head", linear_bytes(bench.backbone.head),
                    [=, &ops, &bench, logits = workspace.take(DType::kF32, Shape{1, 4097})] {
                      ops.linear(logits, scratch->normed, bench.backbone.head);
                    }});
  return stages;
}

}  // namespace

int main(int argc, char** argv) {
  CudaOptions options;
  int layers = 40;
  bool profile = false;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--layers" && i + 1 < argc) layers = std::atoi(argv[++i]);
    if (flag == "--profile") profile = true;
    if (flag == "--no-overlap") options.overlap = false;
    if (flag == "--no-fuse") options.fuse = false;
    if (flag == "--no-graphs") options.graphs = false;
  }
  const std::vector<CudaDevice> devices = list_cuda_devices();
  if (devices.empty()) {
    std::printf("{\"skipped\": \"no CUDA device\"}\n");
    return 0;
  }
  const double start = now();
  Bench bench(options, layers);
  Ops& ops = *bench.ops;
  ops.synchronize();
  const double loaded = now();
  std::printf("{\"device\": \"%s\", \"driver\": \"%s\", \"build\": \"%s\",\n", devices[0].name.c_str(),
              devices[0].driver.c_str(), cuda_build().c_str());
  std::printf(" \"load_seconds\": %.2f, \"overlap\": %d, \"fuse\": %d, \"graphs\": %d,\n", loaded - start,
              options.overlap, options.fuse, options.graphs);

  // Peak of our own projection over a matrix far larger than any cache.
  int64_t launches = 0;
  Workspace workspace(ops);
  const StoredMatrix big = bench.source.need_matrix({"big"}, 131072, 2048);
  const Linear big_linear = ops.prepare_linear(big);
  const View row = workspace.take(DType::kBF16, Shape{1, 2048}),
             wide = workspace.take(DType::kF32, Shape{1, 131072});
  const double big_seconds = bench.seconds([&] { ops.linear(wide, row, big_linear); }, &launches);
  const double peak = linear_bytes(big_linear) / big_seconds * 1e-9;
  std::printf(" \"large_projection_gb_s\": %.0f,\n \"stages\": [\n", peak);
  for (const Stage& stage : stages_of(bench, workspace)) {
    const double seconds = bench.seconds(stage.step, &launches);
    std::printf(
        "  {\"stage\": \"%s\", \"us\": %.1f, \"mb\": %.1f, \"gb_s\": %.0f, \"share\": %.2f, \"launches\": "
        "%ld},\n",
        stage.name.c_str(), seconds * 1e6, stage.bytes * 1e-6, stage.bytes / seconds * 1e-9,
        stage.bytes / seconds * 1e-9 / peak, static_cast<long>(launches));
  }
  {
    backbone::Backbone backbone(workspace, bench.backbone_config, bench.backbone, bench.tables, 1024);
    tower::Tower tower(workspace, bench.tower_config, bench.tower, bench.tables, 1024);
    const View hidden = workspace.take(DType::kBF16, Shape{1, 2048});
    const View id = workspace.take(DType::kI32, Shape{1, 1}),
               codes = workspace.take(DType::kI32, Shape{1, 10});
    const PickState pick{workspace.take(DType::kU8, Shape{sizeof(Sampling)}),
                         workspace.take(DType::kI32, Shape{1}), workspace.take(DType::kI32, Shape{1})};
    Sampling sampling{.seed = 3};
    const int32_t audio = -1;
    ops.upload(pick.sampling, View(&sampling, DType::kU8, Shape{sizeof sampling}));
    ops.upload(id, View(const_cast<int32_t*>(&audio), DType::kI32, Shape{1, 1}));
    const double row_seconds = bench.seconds([&] { backbone.run(hidden, {id, codes}); }, &launches);
    std::printf("  {\"stage\": \"backbone row\", \"us\": %.1f, \"launches\": %ld},\n", row_seconds * 1e6,
                static_cast<long>(launches));
    const double tower_seconds = bench.seconds(
        [&] {
          tower.draw_frame(hidden, {id, codes}, pick);
        },
        &launches);
    std::printf("  {\"stage\": \"tower with nine draws\", \"us\": %.1f, \"launches\": %ld}\n ],\n",
                tower_seconds * 1e6, static_cast<long>(launches));
  }

  ModelGenerator generator(ops,
                           {.backbone_config = bench.backbone_config,
                            .backbone = bench.backbone,
                            .tower_config = bench.tower_config,
                            .tower = bench.tower,
                            .tables = bench.tables},
                           1024);
  const auto prompt_of = [](int rows) {
    PromptRows prompt;
    for (int32_t i = 0; i < rows; ++i) prompt.ids.push_back((i * 7919 + 13) % 248000);
    return prompt;
  };
  RandomCodec codec_source(full_sizes().codec, 1);
  const codec::Weights codec_weights = codec::load_weights(ops, codec_source, {}, codec::Parts::kDecoder);
  const codec::Limits codec_limits{.frames_per_call = 8, .frames = 1 << 20};
  CodecVocoder vocoder(ops.beside(), codec_weights, codec_limits);
  std::vector<int32_t> codes(10);
  std::vector<float> samples(static_cast<size_t>(codec_limits.frames_per_call * vocoder.samples_per_frame()));
  const auto decode = [&](int frames) {
    std::vector<int32_t> group;
    for (int f = 0; f < frames; ++f) group.insert(group.end(), codes.begin(), codes.end());
    vocoder.begin(group);
    vocoder.finish(std::span(samples).first(static_cast<size_t>(frames * vocoder.samples_per_frame())));
  };
  const auto first_frame = [&](int rows, bool shown) {
    const double begin = now();
    generator.start(prompt_of(rows), {.seed = 5}, kAllFrames + 8);
    const double prompt = now();
    generator.next(codes);
    const double frame = now();
    decode(1);
    if (!shown) return;
    const double end = now();
    std::printf(" \"prompt_%d_ms\": %.2f, \"first_frame_after_ms\": %.2f, \"first_audio_%d_ms\": %.2f,\n",
                rows, (prompt - begin) * 1e3, (frame - prompt) * 1e3, rows, (end - begin) * 1e3);
  };
  first_frame(150, /*shown=*/false);
  if (profile) cudaProfilerStart();  // for a profiler that waits for it: one prompt and one frame
  first_frame(150, /*shown=*/true);
  if (profile) cudaProfilerStop();
  first_frame(kContext, /*shown=*/true);
  std::vector<double> times;
  const int64_t allocations = cuda_counters(ops).allocations;
  uint64_t hash = kHashStart;
  int64_t frame_launches = 0;
  for (int f = 0; f < kAllFrames; ++f) {
    const int64_t before = cuda_counters(ops).launches;
    const double begin = now();
    generator.next(codes);
    if (f >= 2 && f < kFrames + 2) times.push_back(now() - begin);  // the first two run plainly and record
    frame_launches = cuda_counters(ops).launches - before;
    for (int32_t code : codes) hash = hashed(hash, static_cast<uint32_t>(code));
  }
  std::sort(times.begin(), times.end());
  const CudaCounters counters = cuda_counters(ops);
  for (const int group : {1, 8}) {
    std::vector<double> codec_times;
    for (int f = 0; f < 40; ++f) {
      const double begin = now();
      decode(group);
      codec_times.push_back(now() - begin);
    }
    std::printf(" \"codec_%d_frames_ms\": %.3f,\n", group, median(codec_times) * 1e3);
  }
  // Whole requests, the codec after the frames on the same queue, then beside them.
  CodecVocoder in_line(ops, codec_weights, codec_limits);
  for (Vocoder* each : {&in_line, &vocoder}) {
    const Speech speech = speak(generator, *each, prompt_of(150));
    std::printf(
        " \"speech_codec_%s\": {\"frames\": %ld, \"seconds\": %.4f, \"rtf\": %.4f, \"first_audio_ms\": %.2f, "
        "\"pcm_hash\": \"%016lx\"},\n",
        each == &vocoder ? "beside" : "in_line", static_cast<long>(speech.frames), speech.seconds,
        speech.rtf(), speech.first_audio * 1e3, static_cast<unsigned long>(speech.hash));
  }
  std::printf(
      " \"frame_ms\": {\"median\": %.4f, \"min\": %.4f, \"p95\": %.4f, \"frames\": %d, \"context\": %d},\n",
      times[times.size() / 2] * 1e3, times[0] * 1e3, times[times.size() * 95 / 100] * 1e3, kFrames, kContext);
  std::printf(" \"rtf\": %.4f, \"launches_per_frame\": %ld, \"allocations_in_frames\": %ld,\n",
              times[times.size() / 2] / kFrameSeconds, static_cast<long>(frame_launches),
              static_cast<long>(counters.allocations - allocations));
  std::printf(" \"memory_gb\": %.2f, \"codes_hash\": \"%016lx\"}\n",
              static_cast<double>(counters.bytes) * 1e-9, static_cast<unsigned long>(hash));
  return 0;
}
