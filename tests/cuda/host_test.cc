// The host side of the CUDA backend that needs no device: image features, memory budget, refusals.
#include <thread>

#include "kernels/cuda/image.h"
#include "kernels/cuda/memory.h"
#include "tests/cuda/rig.h"

using namespace drama3;
using namespace drama3::cuda_test;

TEST_CASE("cuda: an image's features follow its marker and the device, and a refused look-up means none") {
  const auto expect = [](std::optional<int> marker, int capability, bool both) {
    std::vector<int> asked;
    const ImageDriver driver{.compiled_for =
                                 [&](int device) {
                                   asked.push_back(device);
                                   return marker;
                                 },
                             .capability = [&](int) { return capability; }};
    const ImageFeatures features = image_features(driver, 3);
    CHECK(features.overlap == both);
    CHECK(features.clusters == both);
    CHECK(asked == std::vector<int>{3});
  };
  expect(90, 90, true);
  expect(90, 121, true);  // PTX for 9.0 compiled by the driver of a newer device
  expect(121, 121, true);
  expect(80, 90, false);  // older code carried to a newer device
  expect(89, 89, false);
  expect(90, 86, false);
  expect(0, 90, false);
  expect(std::nullopt, 90, false);  // the driver knows no such global
}

TEST_CASE("cuda: the loaded image carries a marker that its device can run" * doctest::skip(no_device())) {
  const ImageDriver driver = runtime_image_driver();
  const std::optional<int> marker = driver.compiled_for(0);
  REQUIRE(marker.has_value());
  CHECK(*marker >= 80);
  CHECK(*marker <= driver.capability(0));
}

TEST_CASE("cuda: a refused reservation leaves usage and peak as they were, also among threads") {
  MemoryBudget budget;
  budget.set_limit(1000);
  REQUIRE(budget.reserve(600));
  budget.commit(600);
  CHECK_FALSE(budget.reserve(401));
  CHECK(budget.used() == 600);
  CHECK(budget.peak() == 600);
  REQUIRE(budget.reserve(400));  // set aside: nobody else gets it, and it counts only when it is given
  CHECK_FALSE(budget.reserve(1));
  budget.refund(400);
  CHECK(budget.used() == 600);
  CHECK(budget.peak() == 600);
  CHECK(budget.allocations() == 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 2000; ++n) {
        if (!budget.reserve(300)) continue;
        if (n % 2 == 0) {
          budget.refund(300);
        } else {
          budget.commit(300);
          budget.release(300);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(budget.used() == 600);
  CHECK(budget.peak() == 900);
}

TEST_CASE("cuda: what weights pass through on their way counts before loading, and is given back after it" *
          doctest::skip(no_device())) {
  const auto ops = make_cuda_ops({});
  const int64_t ring = ops->loading_bytes();
  CHECK(ring > 0);
  const int64_t free = ops->free_bytes();
  CHECK_NOTHROW(check_memory(*ops, free - 2 * ring, 0));
  CHECK_THROWS_AS(check_memory(*ops, free - ring / 2, 0), Error);

  const std::vector<float> values(1000, 1.0f);
  const View vector =
      ops->prepare_vector(View(const_cast<float*>(values.data()), DType::kF32, Shape{1000}), 0.0f);
  const int64_t loading = cuda_counters(*ops).bytes;
  ops->synchronize();
  CHECK(loading - cuda_counters(*ops).bytes >= ring);
  CHECK(values_of(*ops, vector) == values);
}

TEST_CASE("cuda: a device that does not exist is refused with what was found") {
  CHECK_THROWS_WITH_AS(make_cuda_ops({.device = 99}),
                       doctest::Contains("device cuda:99: expected a device below"), Error);
}
