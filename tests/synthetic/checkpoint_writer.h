// A whole checkpoint folder of synthetic weights, in the published layout.
#pragma once

#include <cstdint>
#include <string>

#include "tests/codec/random_codec.h"
#include "tests/cuda/synthetic.h"

namespace drama3 {

struct SyntheticSizes {
  backbone::Config backbone;
  tower::Config tower;
  CodecSizes codec;
};

// The published model's sizes with so many backbone layers, and a small model for tests.
SyntheticSizes full_sizes(int layers = 40);
SyntheticSizes small_sizes();

// Writes config.json, generation_config.json, a copy of `tokenizer`, codec.pth, and the tensors of backbone
// and tower in the order in which the loaders ask for them, in shards of at most shard_bytes with their
// index. The tensors are those of cuda_test::SyntheticSource. The folder is made; files in it are replaced.
// Everything is on the device when it returns; the bytes written are returned.
uint64_t write_synthetic_checkpoint(const std::string& folder, const SyntheticSizes& sizes,
                                    const std::string& tokenizer, int threads,
                                    uint64_t shard_bytes = uint64_t{5} << 30);

}  // namespace drama3
