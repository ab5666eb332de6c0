// One-row products and experts at full-size shapes, as bytes of weights per second and share of the read
// bandwidth that the same threads measure in between.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "bench/ops/read_bandwidth.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/targets.h"

namespace drama3 {
namespace {

constexpr int64_t kHidden = 2048;
constexpr int64_t kTowerFfn = 9728;
constexpr int64_t kExperts = 256, kTopK = 8, kExpertFfn = 512;
constexpr int64_t kWorkingSet = int64_t{768} << 20;  // far above any cache; weights rotate through it

// Memory full of bytes that are ordinary numbers as BF16 and as e4m3: neither NaN nor subnormal.
const std::vector<uint64_t>& weights_memory() {
  static const std::vector<uint64_t> memory = [] {
    std::vector<uint64_t> words(static_cast<size_t>(kWorkingSet) / 8);
    uint64_t word = 0x9e3779b97f4a7c15u;
    for (uint64_t& out : words) {
      word = word * 6364136223846793005u + 1442695040888963407u;
      out = (word & 0x8787878787878787u) | 0x3838383838383838u;
    }
    return words;
  }();
  return memory;
}

// Matrix number `index` of this shape and type inside the memory, wrapping around.
Linear weight_at(int64_t out, int64_t in, DType type, int64_t index, const View& scale) {
  const int64_t bytes = out * in * static_cast<int64_t>(dtype_size(type));
  const int64_t slot = index % (kWorkingSet / bytes);
  auto* data = reinterpret_cast<std::byte*>(const_cast<uint64_t*>(weights_memory().data())) + slot * bytes;
  return {.out = out,
          .in = in,
          .weight = View(data, type, Shape{out, in}),
          .scale = type == DType::kF8E4M3 ? scale : View{},
          .bias = {},
          .packed = nullptr};
}

// Times each iteration of `op`, which reads `bytes` of weights, and after it one pass of plain reading of as
// many bytes, so that a shared machine disturbs both alike.
template <typename Op>
void measure(benchmark::State& state, Threads& threads, int64_t bytes, const Op& op) {
  PlainReads reads(threads, weights_memory(), bytes);
  std::vector<double> rates, read_rates;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    op();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(time.count());
    rates.push_back(static_cast<double>(bytes) / time.count());
    read_rates.push_back(reads.pass());
  }
  const double rate = undisturbed(std::move(rates)), peak = undisturbed(std::move(read_rates));
  state.counters["bytes"] = static_cast<double>(bytes);
  state.counters["GB/s"] = rate / 1e9;
  state.counters["read GB/s"] = peak / 1e9;
  state.counters["share"] = rate / peak;
}

void gemv(benchmark::State& state, int64_t in, int64_t out, DType type) {
  CpuOps ops(static_cast<int>(state.range(0)));
  std::vector<float> scales(static_cast<size_t>(((out + 127) / 128) * ((in + 127) / 128)), 0.01f);
  const View scale(scales.data(), DType::kF32, Shape{(out + 127) / 128, (in + 127) / 128});
  const Buffer x = ops.allocate(DType::kF32, Shape{1, in}), y = ops.allocate(DType::kF32, Shape{1, out});
  std::fill_n(x.view.row<float>(0), in, 0.5f);
  int64_t turn = 0;
  measure(state, ops.threads(), in * out * static_cast<int64_t>(dtype_size(type)),
          [&] { ops.linear(y.view, x.view, weight_at(out, in, type, turn++, scale)); });
}

// Eight of 256 experts for one row, inputs quantised, other experts at each turn.
void experts(benchmark::State& state) {
  CpuOps ops(static_cast<int>(state.range(0)));
  std::vector<float> scales(64, 0.01f);
  const View scale(scales.data(), DType::kF32, Shape{kExpertFfn / 128, kHidden / 128});
  const View down_scale(scales.data(), DType::kF32, Shape{kHidden / 128, kExpertFfn / 128});
  MoeMix mix;
  mix.top_k = kTopK;
  mix.experts = {.hidden = kHidden, .ffn = kExpertFfn, .each = {}, .packed = nullptr};
  for (int64_t e = 0; e < kExperts; ++e) {
    mix.experts.each.push_back({weight_at(kExpertFfn, kHidden, DType::kF8E4M3, 3 * e, scale),
                                weight_at(kExpertFfn, kHidden, DType::kF8E4M3, 3 * e + 1, scale),
                                weight_at(kHidden, kExpertFfn, DType::kF8E4M3, 3 * e + 2, down_scale)});
  }
  const Buffer x = ops.allocate(DType::kF32, Shape{1, kHidden}), y = ops.allocate(DType::kF32, x.view.shape);
  std::fill_n(x.view.row<float>(0), kHidden, 0.5f);
  const Buffer indices = ops.allocate(DType::kI32, Shape{1, kTopK});
  const Buffer weights = ops.allocate(DType::kF32, Shape{1, kTopK});
  const Buffer workspace = ops.allocate(DType::kU8, Shape{ops.expert_workspace(mix, 1)});
  int32_t turn = 0;
  measure(state, ops.threads(), kTopK * 3 * kHidden * kExpertFfn, [&] {
    for (int32_t slot = 0; slot < kTopK; ++slot) {
      indices.view.row<int32_t>(0)[slot] = (turn * 8 + slot) % static_cast<int32_t>(kExperts);
    }
    ++turn;
    ops.expert_ffn(y.view, x.view, {indices.view, weights.view}, mix, {}, workspace.view);
  });
}

// One thread, then one per core.
void thread_counts(benchmark::internal::Benchmark* bench) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  bench->ArgName("threads")->Arg(1);
  if (cores > 1) bench->Arg(cores);
  bench->UseManualTime()->Unit(benchmark::kMicrosecond);
}

BENCHMARK_CAPTURE(gemv, bf16_2048x9728, kHidden, kTowerFfn, DType::kBF16)->Apply(thread_counts);
BENCHMARK_CAPTURE(gemv, bf16_9728x2048, kTowerFfn, kHidden, DType::kBF16)->Apply(thread_counts);
BENCHMARK_CAPTURE(gemv, fp8_2048x8192, kHidden, 8192, DType::kF8E4M3)->Apply(thread_counts);
BENCHMARK(experts)->Name("experts/fp8_8_of_256")->Apply(thread_counts);

}  // namespace
}  // namespace drama3

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("instruction_set", drama3::instruction_set());
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
