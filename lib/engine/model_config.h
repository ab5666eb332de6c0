// config.json and generation_config.json of a checkpoint as plain checked structs.
#pragma once

#include <cstdint>
#include <string>

#include "lib/backbone/config.h"
#include "lib/codec/config.h"
#include "lib/engine/engine.h"
#include "lib/store/json_reader.h"
#include "lib/text/tokenizer.h"
#include "lib/tower/config.h"

namespace drama3 {

struct ModelConfig {
  backbone::Config backbone;
  tower::Config tower;
  codec::Config codec;
  int64_t max_positions = 0;  // rows the model was made for
};

// Numbers out of their range, or that do not divide as the formulas need, are Errors naming file and JSON
// path. Token ids that the file leaves out are looked up in the tokenizer.
ModelConfig parse_model_config(const JsonDocument& document, const Tokenizer& tokenizer);

// How a checkpoint wants to be spoken with.
struct GenerationConfig {
  SamplingSettings sampling;
  int64_t piece_frames = 2048;  // most frames of one piece of a long text ("max_frames")
  int64_t piece_rows = 256;     // most text rows of one piece (our own member, "piece_rows")
};

// Absent members keep the built-in defaults.
GenerationConfig parse_generation_config(const JsonDocument& document);

}  // namespace drama3
