// The memory check before loading: what a sequence takes, and the refusal with both numbers.
#include <doctest/doctest.h>

#include <string>

#include "kernels/ref/ref_ops.h"
#include "lib/base/error.h"
#include "lib/engine/model.h"
#include "lib/engine/model_generator.h"
#include "tests/model/golden_tensors.h"

using namespace drama3;

TEST_CASE("the bytes counted for a sequence are those of its caches and state") {
  const ModelConfig config{.backbone = tiny_backbone(), .tower = tiny_tower()};
  const int64_t attention = 2 * 1 * 256 * 100 * 4;
  const int64_t delta = 2 * (4 * 128 * 128 * 4 + 3 * 1024 * 4);
  const int64_t tower = 2 * 11 * 2 * 32 * 100 * 4;
  CHECK(sequence_bytes(config, DType::kF32, 100) == attention + delta + tower);
  CHECK(sequence_bytes(config, DType::kBF16, 100) < sequence_bytes(config, DType::kF32, 100));
}

TEST_CASE("more than the free memory is refused with both numbers") {
  const RefOps ops;
  const int64_t needed = int64_t{1} << 60;
  CHECK_NOTHROW(check_memory(ops, needed, 1000));  // weights stay in the file
  try {
    check_memory(ops, 0, needed);
    FAIL("not refused");
  } catch (const Error& error) {
    const std::string sentence = error.what();
    CHECK(sentence.find(std::to_string(needed)) != std::string::npos);
    CHECK(sentence.find("free bytes") != std::string::npos);
  }
}
