// Claiming of pieces, spinning and sleeping.
#include "kernels/cpu/threads.h"

#include <hwy/cache_control.h>

#include <algorithm>

namespace drama3 {
namespace {

constexpr int kSpins = 1000;             // pauses of a worker before it sleeps: 15 to 40 us
constexpr int kSpinsOfCaller = 4000;     // pauses of the caller before it yields its core to a late worker
constexpr int64_t kPiecesPerThread = 4;  // evens out threads that lose their core for a while

constexpr uint64_t next_piece(uint64_t ticket) { return ticket & 0xffff; }
constexpr uint64_t piece_count(uint64_t ticket) { return (ticket >> 16) & 0xffff; }

}  // namespace

Threads::Threads(int count) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int wanted = std::min(count > 0 ? count : cores, 1024);
  for (int i = 1; i < wanted; ++i) workers_.emplace_back([this] { work(); });
}

Threads::~Threads() {
  stop_ = true;
  wake_.fetch_add(1);
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Threads::take_pieces(uint64_t ticket) {
  while (next_piece(ticket) < piece_count(ticket)) {
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acquire)) continue;
    const int64_t piece = static_cast<int64_t>(next_piece(ticket));
    const int64_t pieces = static_cast<int64_t>(piece_count(ticket));
    job_.call(job_.body, job_.items * piece / pieces, job_.items * (piece + 1) / pieces);
    done_.fetch_add(1, std::memory_order_release);
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void Threads::run(const Job& job) {
  const int64_t pieces = std::min<int64_t>(job.items, kPiecesPerThread * count());
  job_ = job;
  done_.store(0, std::memory_order_relaxed);
  const uint64_t number = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  const uint64_t ticket = number << 32 | static_cast<uint64_t>(pieces) << 16;
  ticket_.store(ticket);  // before the look at sleepers_: a worker going to sleep looks the other way round
  if (sleepers_.load() > 0) {
    wake_.fetch_add(1);
    wake_.notify_all();
  }
  take_pieces(ticket);
  for (int spin = 0; done_.load(std::memory_order_acquire) < pieces; ++spin) {
    if (spin < kSpinsOfCaller) {
      hwy::Pause();
    } else {
      std::this_thread::yield();
    }
  }
}

void Threads::work() {
  int spin = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    const uint64_t ticket = ticket_.load(std::memory_order_acquire);
    if (next_piece(ticket) < piece_count(ticket)) {
      take_pieces(ticket);
      spin = 0;
    } else if (++spin < kSpins) {
      hwy::Pause();
    } else {
      const uint32_t before = wake_.load();
      sleepers_.fetch_add(1);
      const uint64_t now = ticket_.load();
      if (next_piece(now) >= piece_count(now) && !stop_) wake_.wait(before);
      sleepers_.fetch_sub(1);
      spin = 0;
    }
  }
}

}  // namespace drama3
