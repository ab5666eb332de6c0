// The thread pool of the CPU backend: splits independent outputs among a fixed set of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace drama3 {

// Workers live as long as the pool. After a job they spin for some tens of microseconds, since the next op
// follows soon, then sleep. One caller at a time; a call allocates nothing. How work is cut never changes a
// result: bodies write disjoint outputs and do not sum across items.
class Threads {
 public:
  // The caller counts as one; 0 = one per core.
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(begin, end) on disjoint ranges that cover [0, items) and returns when all are done. `cost` is
  // the work of an item in multiply-adds (roughly); small jobs run inline, in one call.
  template <typename Body>
  void split(int64_t items, int64_t cost, const Body& body) {
    if (items <= 0) return;
    if (workers_.empty() || items == 1 || items * cost < kInlineWork) return body(int64_t{0}, items);
    run({.call = [](const void* context, int64_t begin,
                    int64_t end) { (*static_cast<const Body*>(context))(begin, end); },
         .body = &body,
         .items = items});
  }

 private:
  struct Job {
    void (*call)(const void* body, int64_t begin, int64_t end) = nullptr;
    const void* body = nullptr;
    int64_t items = 0;
  };

  // Waking a sleeping worker costs tens of microseconds; below this many multiply-adds it does not pay.
  static constexpr int64_t kInlineWork = 100'000;

  void run(const Job& job);
  void work();
  // Claims pieces of the job of `ticket` until none is left.
  void take_pieces(uint64_t ticket);

  Job job_;  // written while no piece is open, read by who has claimed one
  // Number of the job (upper 32 bits), its pieces (16) and the next piece to claim (16): one word, so that a
  // worker that comes late cannot claim from a job that has ended.
  std::atomic<uint64_t> ticket_{0};
  std::atomic<int64_t> done_{0};   // pieces of the job that have ended
  std::atomic<uint32_t> wake_{0};  // what sleepers wait on
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace drama3
