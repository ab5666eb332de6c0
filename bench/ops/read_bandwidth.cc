// Passes over memory that add up its words.
#include "bench/ops/read_bandwidth.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

namespace drama3 {
namespace {

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

double undisturbed(std::vector<double> rates) {
  const auto rank = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() * 9 / 10);
  std::nth_element(rates.begin(), rank, rates.end());
  return *rank;
}

PlainReads::PlainReads(Threads& threads, const std::vector<uint64_t>& memory, int64_t bytes)
    : threads_(threads),
      memory_(memory),
      blocks_(bytes / (kBlock * 8)),
      slices_(static_cast<int64_t>(memory.size()) / kBlock / blocks_),
      slice_(slices_ / 2) {}

double PlainReads::pass() {
  const uint64_t* slice = memory_.data() + slice_++ % slices_ * blocks_ * kBlock;
  const auto start = std::chrono::steady_clock::now();
  threads_.split(blocks_, kBlock, [&](int64_t begin, int64_t end) {
    benchmark::DoNotOptimize(sum_words(slice + begin * kBlock, (end - begin) * kBlock));
  });
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  return static_cast<double>(blocks_ * kBlock * 8) / time.count();
}

}  // namespace drama3
