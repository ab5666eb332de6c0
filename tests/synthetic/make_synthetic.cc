// Writes a checkpoint of synthetic weights: full size for measurements, or small.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "lib/base/error.h"
#include "tests/synthetic/checkpoint_writer.h"

using namespace drama3;

namespace {

constexpr const char* kUsage =
    "usage: make_synthetic FOLDER [--layers N] [--small] [--threads N] [--tokenizer FILE]\n"
    "Writes a checkpoint of random weights at full size (41 GB), with N backbone layers, or small.\n";

}  // namespace

int main(int argc, char** argv) {
  std::string folder, tokenizer = DRAMA3_TEST_DATA "/golden/tiny/tokenizer.json";
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  SyntheticSizes sizes = full_sizes();
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool last = i + 1 == argc;
    if (word == "--small") {
      sizes = small_sizes();
    } else if (word == "--layers" && !last) {
      sizes = full_sizes(std::max(1, std::atoi(argv[++i])));
    } else if (word == "--threads" && !last) {
      threads = std::max(1, std::atoi(argv[++i]));
    } else if (word == "--tokenizer" && !last) {
      tokenizer = argv[++i];
    } else if (folder.empty() && !word.starts_with("--")) {
      folder = word;
    } else {
      std::fputs(kUsage, stderr);
      return 2;
    }
  }
  if (folder.empty()) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  try {
    const auto begin = std::chrono::steady_clock::now();
    const uint64_t bytes = write_synthetic_checkpoint(folder, sizes, tokenizer, threads);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%s: %.2f GB in %.1f s, %.2f GB/s, %d threads, flushed\n", folder.c_str(),
                static_cast<double>(bytes) * 1e-9, seconds, static_cast<double>(bytes) * 1e-9 / seconds,
                threads);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_synthetic: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
