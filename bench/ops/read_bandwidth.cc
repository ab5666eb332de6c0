// Passes over memory that add up its words.
#include "bench/ops/read_bandwidth.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

namespace drama3 {
namespace {

constexpr int64_t kPasses = 101;
constexpr int64_t kBlock = 4096;  // words of one item

// Eight sums side by side, so that loads and not the additions set the pace.
uint64_t sum_words(const uint64_t* words, int64_t count) {
  uint64_t sums[8] = {};
  for (int64_t i = 0; i + 8 <= count; i += 8) {
    for (int lane = 0; lane < 8; ++lane) sums[lane] += words[i + lane];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double read_bandwidth(Threads& threads, const std::vector<uint64_t>& memory, int64_t bytes) {
  const int64_t blocks = bytes / (kBlock * 8);
  const int64_t slices = static_cast<int64_t>(memory.size()) / kBlock / blocks;
  std::vector<double> rates;
  for (int64_t pass = 0; pass < kPasses; ++pass) {
    const uint64_t* slice = memory.data() + pass % slices * blocks * kBlock;
    const auto start = std::chrono::steady_clock::now();
    threads.split(blocks, kBlock, [&](int64_t begin, int64_t end) {
      benchmark::DoNotOptimize(sum_words(slice + begin * kBlock, (end - begin) * kBlock));
    });
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    rates.push_back(static_cast<double>(blocks * kBlock * 8) / time.count());
  }
  return median(std::move(rates));
}

}  // namespace drama3
