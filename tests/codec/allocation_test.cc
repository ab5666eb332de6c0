// Decoding and encoding a frame allocate nothing: this program counts every operator new.
#include <doctest/doctest.h>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/ref/ref_ops.h"
#include "tests/allocation_count.h"
#include "tests/codec/codec_fixture.h"

using namespace drama3;

namespace {

void check_no_allocation(Ops& ops) {
  const TinyCodec tiny(ops);
  const Shape code_shape{2, tiny.weights.codebooks()};
  const Buffer codes = ops.allocate(DType::kI32, code_shape);
  const Buffer pcm = ops.allocate(DType::kF32, Shape{2 * tiny.weights.samples_per_frame, 1});
  codec::Decoder decoder(ops, tiny.weights, {.frames_per_call = 2, .frames = 100});
  codec::Encoder encoder(ops, tiny.weights, {.frames_per_call = 2, .frames = 100});
  const int64_t before = allocation_count();
  for (int call = 0; call < 50; ++call) decoder.decode(pcm.view, codes.view);
  decoder.reset();
  CHECK(allocation_count() == before);
  for (int call = 0; call < 3; ++call) encoder.encode(codes.view, pcm.view);
  encoder.reset();
  CHECK(allocation_count() == before);
}

}  // namespace

TEST_CASE("decoding 100 frames and encoding some allocate nothing") {
  RefOps ref;
  check_no_allocation(ref);
  CpuOps cpu(2);
  check_no_allocation(cpu);
}
