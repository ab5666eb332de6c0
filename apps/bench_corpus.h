// The corpus of drama3-bench: its items, their choice by a filter, and the requests they stand for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/engine/engine.h"

namespace drama3::bench {

// One request of the corpus; settings that are absent are the checkpoint's.
struct CorpusItem {
  std::string id;
  std::string category;
  std::string text;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int32_t> top_k;
  uint64_t seed = 0;
  int64_t max_frames = 0;  // the cap of a capped item, a safety limit of the others
  bool capped = false;     // finishes `length` at exactly max_frames; all others finish `stop`
};

// Reads and checks a corpus file (schema drama3-corpus/1); Error names the file and the item.
std::vector<CorpusItem> read_corpus(const std::string& path);

// The corpus of the installed tree or of the source tree that this program lies in; Error when there is none.
std::string find_corpus();

// The items whose id matches one of the comma-separated patterns (* and ? as in a shell; empty takes all);
// Error naming a pattern that matches nothing.
std::vector<CorpusItem> filter_items(const std::vector<CorpusItem>& items, std::string_view patterns);

// Whether the id matches one of the comma-separated patterns.
bool matches(std::string_view patterns, const std::string& id);

// The item as the engine takes it.
SpeechRequest request_of(const CorpusItem& item, const SamplingSettings& defaults);

// SHA-256 over everything that decides the item's bytes: text, settings, seed, cap.
std::string request_digest(const CorpusItem& item);

}  // namespace drama3::bench
