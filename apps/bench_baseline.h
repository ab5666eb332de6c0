// Recorded digests of the corpus for one backend class and checkpoint.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/bench_corpus.h"
#include "apps/bench_record.h"

namespace drama3::bench {

// What one item gave when the baseline was recorded.
struct BaselineItem {
  std::string request;  // request_digest of the item
  std::string sha256;
  int64_t frames = 0;
  std::string finish_reason;
};

struct Baseline {
  std::string path;
  std::string backend;     // backend_class of the device
  std::string checkpoint;  // hash of its files
  std::map<std::string, BaselineItem> items;
};

// "cpu", "cuda", "ref": devices of one class give the same bytes.
std::string backend_class(const std::string& device);

// FOLDER-OF-CORPUS/baselines/CLASS-CHECKPOINT.json, with 16 digits of the hash.
std::string baseline_path(const std::string& corpus, const std::string& backend,
                          const std::string& checkpoint);

// The baseline in the file; nothing when there is no such file. Error when it is damaged.
std::optional<Baseline> read_baseline(const std::string& path);

// Takes the first pass of every item into the baseline (items not run stay) and replaces its file.
void write_baseline(Baseline baseline, const std::vector<CorpusItem>& items,
                    const std::vector<RequestRecord>& requests);

}  // namespace drama3::bench
