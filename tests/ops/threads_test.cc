// The thread pool covers every item once, whatever the sizes, and after its workers have slept.
#include "kernels/cpu/threads.h"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>

#include "kernels/cpu/targets.h"
#include "lib/base/error.h"

using namespace drama3;

namespace {

constexpr int64_t kLarge = 1'000'000'000;  // a cost that never runs inline

void check_cover(Threads& threads, int64_t items, int64_t cost) {
  const auto visits = std::make_unique<std::atomic<int>[]>(static_cast<size_t>(items) + 1);
  threads.split(items, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
  });
  for (int64_t i = 0; i < items; ++i) CHECK(visits[static_cast<size_t>(i)] == 1);
}

}  // namespace

TEST_CASE("every item is visited once") {
  for (const int count : {1, 2, 3, 7}) {
    Threads threads(count);
    CHECK(threads.count() == count);
    for (const int64_t items : {0, 1, 2, 5, 13, 100}) {
      check_cover(threads, items, kLarge);
      check_cover(threads, items, 1);
    }
  }
}

TEST_CASE("jobs follow each other fast, and after the workers have gone to sleep") {
  Threads threads(3);
  std::atomic<int64_t> sum{0};
  for (int job = 0; job < 20000; ++job) {
    threads.split(5, kLarge, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum += i;
    });
    if (job % 4000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  CHECK(sum == 20000 * 10);
}

TEST_CASE("an instruction set that is unknown or absent is an error that names those present") {
  CHECK_THROWS_AS(select_instruction_set("sse9"), Error);
  const std::string best = instruction_sets().front();
  try {
    select_instruction_set("altivec");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find(best) != std::string::npos);
  }
  for (const std::string& set : instruction_sets()) {
    select_instruction_set(set);
    CHECK(instruction_set() == set);
  }
  select_instruction_set("");
  CHECK(instruction_set() == best);
}
