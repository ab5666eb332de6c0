// The share of a run that one process does: warm-up, passes, stream checks, memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/bench_corpus.h"
#include "apps/bench_record.h"

namespace drama3::bench {

// What all processes of a run have agreed on.
struct Plan {
  std::vector<CorpusItem> items;
  int passes = 2;
  int warmup = 1;  // untimed requests of each process before its first pass
  int ranks = 1;
  std::string save_folder;    // for WAV files of pass 1, empty for none
  std::string show_patterns;  // ids whose sound is drawn, empty for none
};

// Told after every request.
using RequestListener = std::function<void(const CorpusItem&, const RequestRecord&)>;

// Whether this rank speaks the item in this pass (from 1). Shares move on by one rank a pass, so that with
// several ranks the passes of an item are compared across them.
bool is_mine(const Plan& plan, size_t item, int pass, int rank);

// Anonymous resident memory of this process in bytes, after freed memory went back to the system.
int64_t resident_bytes();

// Does the rank's share; an Error of a request is recorded, others go through.
RankRecord run_share(Engine& engine, const Plan& plan, int rank, const RequestListener& listener);

}  // namespace drama3::bench
