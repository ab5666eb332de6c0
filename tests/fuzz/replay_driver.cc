// Runs a fuzz target without libFuzzer: over its seeds, then over mutations of them that are the same in
// every run.
//
// Usage: fuzz_NAME MUTATIONS SEED_FILE...   A crash, an exception that is no Error, or more memory than the
// limit ends the program; that is the failure.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;
using Random = std::mt19937_64;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsMemory = false;  // sanitizers reserve terabytes of address space
#else
constexpr bool kLimitsMemory = true;
#endif
constexpr rlim_t kAddressSpace = 384 << 20;

Bytes read_seed(const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "%s: cannot open this seed\n", path);
    std::exit(1);
  }
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// A place that is near either end in two of three cases: that is where headers are.
size_t place(Random& random, size_t size) {
  const size_t window = std::min<size_t>(size, 4096);
  switch (random() % 3) {
    case 0:
      return random() % window;
    case 1:
      return size - window + random() % window;
    default:
      return random() % size;
  }
}

void overwrite_number(Random& random, Bytes& bytes, size_t at) {
  constexpr uint64_t kNumbers[] = {0,      1,          0x7f,       0x80,       0xff,       0x7fff,
                                   0xffff, 0x7fffffff, 0xffffffff, 1ull << 62, 1ull << 63, ~0ull};
  const uint64_t number = kNumbers[random() % std::size(kNumbers)];
  const size_t width = size_t{1} << random() % 4;
  for (size_t i = 0; i < width && at + i < bytes.size(); ++i)
    bytes[at + i] = static_cast<uint8_t>(number >> (8 * i));
}

void mutate_once(Random& random, Bytes& bytes) {
  if (bytes.empty()) return bytes.push_back(static_cast<uint8_t>(random()));
  const size_t at = place(random, bytes.size());
  const auto here = bytes.begin() + static_cast<ptrdiff_t>(at);
  const auto run = static_cast<ptrdiff_t>(std::min<size_t>(1 + random() % 40, bytes.size() - at));
  switch (random() % 6) {
    case 0:
      bytes[at] ^= static_cast<uint8_t>(1u << random() % 8);
      break;
    case 1:
      bytes[at] = static_cast<uint8_t>(random());
      break;
    case 2:
      overwrite_number(random, bytes, at);
      break;
    case 3:
      bytes.erase(here, here + run);
      break;
    case 4: {
      const Bytes copy(here, here + run);
      bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(place(random, bytes.size())), copy.begin(),
                   copy.end());
      break;
    }
    default:
      bytes.resize(at);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s MUTATIONS SEED_FILE...\n", argv[0]);
    return 2;
  }
  const rlimit limit{kAddressSpace, kAddressSpace};
  if (kLimitsMemory && setrlimit(RLIMIT_AS, &limit) != 0) return 1;
  const long mutations = std::atol(argv[1]);
  for (int seed = 2; seed < argc; ++seed) {
    const Bytes whole = read_seed(argv[seed]);
    LLVMFuzzerTestOneInput(whole.data(), whole.size());
    for (long i = 0; i < mutations; ++i) {
      Random random(static_cast<uint64_t>(i));
      Bytes bytes = whole;
      for (uint64_t steps = 1 + random() % 4; steps > 0; --steps) mutate_once(random, bytes);
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
  }
  std::printf("%d seeds, %ld mutations each\n", argc - 2, mutations);
  return 0;
}
