// A checkpoint loaded on a backend: its files, configs, tokenizer and the prepared weights of every part.
#pragma once

#include <future>
#include <memory>
#include <string>

#include "lib/backbone/weights.h"
#include "lib/codec/weights.h"
#include "lib/engine/model_config.h"
#include "lib/engine/model_generator.h"
#include "lib/store/checkpoint.h"
#include "lib/store/codec_file.h"
#include "lib/text/tokenizer.h"
#include "lib/tower/weights.h"

namespace drama3 {

struct LoadOptions {
  bool verify = false;  // refuse NaN and infinity in any weight
  codec::Parts codec_parts = codec::Parts::kDecoder;
  int64_t max_rows = 0;  // rows of one sequence that the memory check counts
};

// Bytes that one sequence of `rows` rows takes on a backend: caches and state of backbone and tower.
int64_t sequence_bytes(const ModelConfig& config, DType activation_type, int64_t rows);

// Error with both numbers when a backend has no room for so many bytes of weights (where it copies them) and
// state, which comes when what weights pass through is gone.
void check_memory(const Ops& ops, int64_t weight_bytes, int64_t state_bytes);

// Weights may lie in the mapped files, so the files live as long as the model; `ops` outlives it.
struct Model {
  // Checks everything before the first weight is prepared: files, headers, config, names, shapes. Error
  // otherwise.
  Model(Ops& ops, const std::string& path, const LoadOptions& options);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  Checkpoint checkpoint;
  CodecFile codec_file;
  Tokenizer tokenizer;
  ModelConfig config;
  std::future<codec::Weights> loading_codec;  // until `codec` has them
  backbone::Weights backbone;
  tower::Weights tower;
  codec::Weights codec;
  EmbedTables tables;
};

// What a ModelGenerator runs; the model outlives it.
GeneratorModel generator_parts(const Model& model);

}  // namespace drama3
