// Times the loading of a checkpoint folder onto a CUDA device beside plain reads of the same files, past the
// page cache and through it, and prints a short table.
#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "lib/base/file.h"
#include "lib/base/system_calls.h"
#include "lib/engine/model.h"

using namespace drama3;

namespace {

constexpr uint64_t kReadBytes = 8 << 20;
constexpr int kThreads = 8;  // as many as load weights

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<std::string> weight_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string extension = entry.path().extension();
    if (extension == ".safetensors" || extension == ".pth") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Flushes the files and puts their pages out of the cache.
void cool(const std::vector<std::string>& files) {
  for (const std::string& path : files) {
    const File file = File::open(path, O_RDWR);
    ::fsync(file.fd());
    ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

struct Rate {
  double bytes = 0.0;
  double seconds = 0.0;
  bool refused = false;
  double gb_s() const { return seconds > 0.0 ? bytes / seconds * 1e-9 : 0.0; }
};

// Reads the files in pieces, kThreads at a time, each thread into a buffer of its own.
Rate plain_read(const std::vector<std::string>& files, bool direct) {
  Rate rate;
  std::atomic<bool> refused{false};
  const double begin = now();
  for (const std::string& path : files) {
    const int fd = direct ? sys::open_direct(path.c_str()) : sys::open(path.c_str(), O_RDONLY);
    if (fd < 0) return {.refused = true};
    const File file(fd, path);
    const uint64_t size = file.size();
    std::atomic<uint64_t> next{0};
    std::vector<std::future<void>> readers;
    for (int i = 0; i < kThreads; ++i) {
      readers.push_back(std::async(std::launch::async, [&] {
        void* buffer = std::aligned_alloc(4096, kReadBytes);
        for (uint64_t at = next.fetch_add(kReadBytes); at < size; at = next.fetch_add(kReadBytes)) {
          if (sys::pread(file.fd(), buffer, kReadBytes, static_cast<off_t>(at)) <= 0) refused = true;
        }
        std::free(buffer);
      }));
    }
    for (std::future<void>& reader : readers) reader.get();
    rate.bytes += static_cast<double>(size);
  }
  rate.seconds = now() - begin;
  rate.refused = refused;
  return rate;
}

void print(const char* what, const Rate& rate, const std::string& remark) {
  if (rate.refused) {
    std::printf("| %s | refused | | | %s |\n", what, remark.c_str());
  } else {
    std::printf("| %s | %.2f | %.2f | %.2f | %s |\n", what, rate.bytes * 1e-9, rate.seconds, rate.gb_s(),
                remark.c_str());
  }
  std::fflush(stdout);
}

// Loads the folder; `against` is the plain read that the load is compared with.
void load(const char* what, const std::string& folder, DirectReads direct, const Rate& against) {
  const double opened = now();
  const std::unique_ptr<Ops> ops = make_cuda_ops({.direct = direct});
  const double begin = now();
  const Model model(*ops, folder, {});
  const double end = now();
  const CudaCounters counters = cuda_counters(*ops);
  const ReadCounts& read = counters.read;
  const Rate rate{.bytes = static_cast<double>(read.direct + read.cached + read.copied),
                  .seconds = end - begin};
  print(what, rate,
        join("share ", against.gb_s() > 0.0 ? rate.gb_s() / against.gb_s() : 0.0, "; direct ",
             read.direct / 1000000, " MB, cache ", counters.read.cached / 1000000, " MB, memory ",
             read.copied / 1000000, " MB; device opened in ", begin - opened, " s; ",
             counters.bytes / 1000000, " MB held"));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: cuda_load_bench FOLDER\n", stderr);
    return 2;
  }
  const std::string folder = argv[1];
  if (list_cuda_devices().empty()) {
    std::puts("skipped: no CUDA device");
    return 0;
  }
  try {
    const std::vector<std::string> files = weight_files(folder);
    struct ::statfs system {};
    ::statfs(folder.c_str(), &system);
    std::printf("%s, %s, file system type %lx, %zu files, %d threads\n\n",
                list_cuda_devices()[0].name.c_str(), folder.c_str(),
                static_cast<unsigned long>(system.f_type), files.size(), kThreads);
    std::puts("| what | GB | s | GB/s | |\n|---|---|---|---|---|");
    cool(files);
    const Rate direct = plain_read(files, /*direct=*/true);
    print("plain read, O_DIRECT", direct, "");
    cool(files);
    load("load, nothing cached", folder, DirectReads::kUncached, direct);
    cool(files);
    load("load, nothing cached, again", folder, DirectReads::kUncached, direct);
    print("plain read after it, O_DIRECT", plain_read(files, true), "");
    plain_read(files, false);  // fills the cache
    const Rate cached = plain_read(files, false);
    print("plain read, cached", cached, "");
    load("load, cached", folder, DirectReads::kUncached, cached);
    load("load, cached, again", folder, DirectReads::kUncached, cached);
    load("load, O_DIRECT though cached", folder, DirectReads::kAlways, direct);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cuda_load_bench: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
