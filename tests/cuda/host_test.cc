// The host side of the CUDA backend that needs no device: image features, memory budget, refusals.
#include <thread>

#include "kernels/cuda/image.h"
#include "kernels/cuda/memory.h"
#include "tests/cuda/rig.h"

using namespace drama3;
using namespace drama3::cuda_test;

TEST_CASE("cuda: an image's features follow its marker and the device, and a failed look-up means none") {
  const auto expect = [](const ImageMarker& marker, int device, bool both) {
    const ImageFeatures features = features_of(marker, device);
    CHECK(features.overlap == both);
    CHECK(features.clusters == both);
  };
  expect({.found = true, .compiled_for = 90}, 90, true);
  expect({.found = true, .compiled_for = 90}, 121, true);
  expect({.found = true, .compiled_for = 121}, 121, true);
  expect({.found = true, .compiled_for = 80}, 90, false);  // older code carried to a newer device
  expect({.found = true, .compiled_for = 89}, 89, false);
  expect({.found = false, .compiled_for = 90}, 90, false);  // the driver knows no such symbol
}

TEST_CASE("cuda: a refused reservation leaves usage and peak as they were, also among threads") {
  MemoryBudget budget;
  budget.set_limit(1000);
  CHECK(budget.reserve(600));
  CHECK_FALSE(budget.reserve(401));
  CHECK(budget.used() == 600);
  CHECK(budget.peak() == 600);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 2000; ++n) {
        if (budget.reserve(300)) budget.release(300);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(budget.used() == 600);
  CHECK(budget.peak() == 900);
}

TEST_CASE("cuda: a device that does not exist is refused with what was found") {
  CHECK_THROWS_WITH_AS(make_cuda_ops({.device = 99}),
                       doctest::Contains("device cuda:99: expected a device below"), Error);
}
