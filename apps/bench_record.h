// What a run of drama3-bench records: requests, gates and ranks; plain data without rules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench_picture.h"
#include "lib/engine/engine.h"

namespace drama3::bench {

// A rule that was tested `checked` times.
struct Gate {
  std::string name;
  std::string rule;
  int64_t checked = 0;
  int64_t failed = 0;
  std::string first_failure;

  // Counts one test; `failure` tells what was expected and got.
  bool check(bool good, const std::string& failure) {
    ++checked;
    if (good) return true;
    if (failed++ == 0) first_failure = failure;
    return false;
  }
};

// One timed request.
struct RequestRecord {
  size_t item = 0;  // index among the chosen items
  int pass = 0;     // from 1
  int rank = 0;
  std::string error;  // sentence of the Error that ended it, empty for none; the rest is then empty
  int64_t frames = 0;
  int64_t samples = 0;  // counted from the events
  Finish finish = Finish::kStop;
  std::string sha256;  // of the 16-bit samples
  double peak = 0.0;   // of the float samples, full scale 1
  uint64_t clipped = 0;
  double compute_seconds = 0.0;
  double first_audio_seconds = 0.0;
  StageSeconds stages;
};

// Everything one process of a run did.
struct RankRecord {
  int rank = 0;
  std::string error;  // why it could not do its share, empty for none
  EngineInfo engine;
  std::string driver;
  std::string checkpoint_hash;
  std::vector<int64_t> memory_bytes;  // anonymous resident memory after each pass
  std::vector<RequestRecord> requests;
  std::vector<Gate> stream_gates;
  std::string stream_item;  // id of the item of the stream checks, empty for none
  std::vector<SoundPicture> pictures;
};

}  // namespace drama3::bench
