// Reading and choosing corpus items.
#include "apps/bench_corpus.h"

#include <fnmatch.h>

#include <algorithm>
#include <cfloat>
#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/sha256.h"
#include "lib/store/json_reader.h"

namespace drama3::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSchema = "drama3-corpus/1";
constexpr JsonLimits kCorpusLimits{.bytes = 4 << 20, .values = 1 << 16};

// An id is also a file name of --save.
bool is_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 && id.front() != '-' && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

void read_settings(const JsonValue& settings, CorpusItem* item) {
  for (const JsonValue& member : settings.members()) {
    if (member.key() == "temperature") {
      item->temperature = member.as_number(0, FLT_MAX);
    } else if (member.key() == "top_p") {
      item->top_p = member.as_number(DBL_MIN, 1);
    } else if (member.key() == "top_k") {
      item->top_k = static_cast<int32_t>(member.as_unsigned(0, INT32_MAX));
    } else {
      member.refuse("temperature, top_p or top_k");
    }
  }
}

CorpusItem read_item(const JsonValue& value) {
  CorpusItem item;
  item.id = value.at("id").as_text();
  if (!is_id(item.id)) value.at("id").refuse("an id of a to z, 0 to 9, - and _");
  item.category = value.at("category").as_text();
  item.text = value.at("text").as_text();
  read_settings(value.at("settings"), &item);
  item.seed = value.at("seed").as_unsigned();
  item.max_frames = static_cast<int64_t>(value.at("max_frames").as_unsigned(1, INT32_MAX));
  const std::string_view finish = value.at("finish_reason").as_text();
  if (finish != "stop" && finish != "length") value.at("finish_reason").refuse("stop or length");
  item.capped = finish == "length";
  if (value.size() != 7) value.refuse("id, category, text, settings, seed, max_frames, finish_reason alone");
  return item;
}

// The patterns between the commas.
std::vector<std::string> split_patterns(std::string_view patterns) {
  std::vector<std::string> list;
  while (!patterns.empty()) {
    const size_t comma = std::min(patterns.find(','), patterns.size());
    if (comma > 0) list.emplace_back(patterns.substr(0, comma));
    patterns.remove_prefix(std::min(comma + 1, patterns.size()));
  }
  return list;
}

bool matches_one(const std::string& pattern, const std::string& id) {
  return ::fnmatch(pattern.c_str(), id.c_str(), 0) == 0;
}

}  // namespace

std::vector<CorpusItem> read_corpus(const std::string& path) {
  const JsonDocument document = JsonDocument::read(path, kCorpusLimits);
  const JsonValue schema = document.root().at("schema");
  if (schema.as_text() != kSchema) schema.refuse(std::string(kSchema));
  std::vector<CorpusItem> items;
  for (const JsonValue& value : document.root().at("items").elements()) {
    CorpusItem item = read_item(value);
    for (const CorpusItem& other : items) {
      if (other.id == item.id) value.at("id").refuse("an id that no other item has");
    }
    items.push_back(std::move(item));
  }
  if (items.empty()) document.root().at("items").refuse("at least one item");
  return items;
}

std::string find_corpus() {
  std::error_code problem;
  const fs::path program = fs::read_symlink("/proc/self/exe", problem).parent_path();
  const fs::path installed = program.parent_path() / "share" / "drama3" / "corpus.json";
  if (fs::is_regular_file(installed, problem)) return installed.string();
  for (fs::path above = program; above.has_relative_path(); above = above.parent_path()) {
    const fs::path file = above / "corpus" / "corpus.json";
    if (fs::is_regular_file(file, problem)) return file.string();
  }
  fail("--corpus: expected a corpus beside this program, got none at ", installed.string(),
       "; give --corpus=FILE");
}

bool matches(std::string_view patterns, const std::string& id) {
  const std::vector<std::string> list = split_patterns(patterns);
  return std::any_of(list.begin(), list.end(), [&](const auto& pattern) { return matches_one(pattern, id); });
}

std::vector<CorpusItem> filter_items(const std::vector<CorpusItem>& items, std::string_view patterns) {
  if (patterns.empty()) return items;
  for (const std::string& pattern : split_patterns(patterns)) {
    const bool used = std::any_of(items.begin(), items.end(),
                                  [&](const CorpusItem& item) { return matches_one(pattern, item.id); });
    if (!used) fail("--filter: expected patterns of item ids, got ", pattern, ", which matches none");
  }
  std::vector<CorpusItem> chosen;
  std::copy_if(items.begin(), items.end(), std::back_inserter(chosen),
               [&](const CorpusItem& item) { return matches(patterns, item.id); });
  if (chosen.empty()) fail("--filter: expected a pattern, got none");
  return chosen;
}

SpeechRequest request_of(const CorpusItem& item, const SamplingSettings& defaults) {
  SpeechRequest request;
  request.text = item.text;
  request.sampling = defaults;
  if (item.temperature) request.sampling.temperature = static_cast<float>(*item.temperature);
  if (item.top_p) request.sampling.top_p = static_cast<float>(*item.top_p);
  if (item.top_k) request.sampling.top_k = *item.top_k;
  request.seed = item.seed;
  request.max_frames = item.max_frames;
  return request;
}

std::string request_digest(const CorpusItem& item) {
  const auto shown = [](const auto& setting) { return setting ? join(*setting) : std::string("default"); };
  const std::string all = join(item.text, '\0', shown(item.temperature), '\0', shown(item.top_p), '\0',
                               shown(item.top_k), '\0', item.seed, '\0', item.max_frames);
  return sha256_hex(std::as_bytes(std::span(all)));
}

}  // namespace drama3::bench
