// The corpus file, its filter, the figures, and the reports of drama3-bench.
#include "apps/bench_report.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>

#include "apps/bench_options.h"
#include "lib/text/limits.h"
#include "tests/apps/fake_engine.h"

namespace drama3::bench {
namespace {

const std::string kCorpus = std::string(DRAMA3_TEST_DATA) + "/../../corpus/corpus.json";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What read_corpus says about a file with this content.
std::string refusal(const std::string& content) {
  const std::string path = (std::filesystem::temp_directory_path() / "drama3_corpus_test.json").string();
  std::ofstream(path) << content;
  std::string answer = "accepted";
  try {
    read_corpus(path);
  } catch (const Error& error) {
    answer = error.what();
  }
  std::filesystem::remove(path);
  return answer;
}

std::string one_item(const std::string& from = "", const std::string& to = "") {
  std::string text =
      R"({"schema": "drama3-corpus/1", "items": [{"id": "a-1", "category": "c", "text": "Hi.", "settings": {},
 "seed": 1, "max_frames": 9, "finish_reason": "stop"}]})";
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return text;
}

std::string option_refusal(const std::vector<const char*>& arguments) {
  try {
    read_bench_options(CommandLine(Tool::kBench, arguments));
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

Report report_of(const Plan& plan) {
  FakeEngine engine;
  const std::vector<RankRecord> ranks{run_share(engine, plan, 0, {})};
  return make_report(plan, ranks, judge(plan, ranks, {}));
}

}  // namespace

TEST_CASE("the corpus has six items of each of four categories, and long-05 alone is capped") {
  const std::vector<CorpusItem> items = read_corpus(kCorpus);
  CHECK(items.size() == 24);
  std::map<std::string, int> categories;
  std::set<uint64_t> seeds;
  for (const CorpusItem& item : items) {
    ++categories[item.category];
    seeds.insert(item.seed);
    CHECK(item.id == item.category + "-0" + std::to_string(categories[item.category]));
    CHECK(item.capped == (item.id == "long-05"));
    checked_text(item.text);
  }
  CHECK(categories == std::map<std::string, int>{{"short", 6}, {"medium", 6}, {"long", 6}, {"edge", 6}});
  CHECK(seeds.size() == 24);
}

TEST_CASE("a corpus file is refused by the rule that it breaks") {
  CHECK(refusal(one_item()) == "accepted");
  CHECK(contains(refusal(one_item("corpus/1", "corpus/2")), "schema"));
  CHECK(contains(refusal(one_item("a-1", "../a")), "id"));
  CHECK(contains(refusal(one_item("\"stop\"", "\"end\"")), "stop or length"));
  CHECK(contains(refusal(one_item("\"max_frames\": 9", "\"max_frames\": 0")), "max_frames"));
  CHECK(contains(refusal(one_item("\"seed\": 1", "\"seed\": -1")), "seed"));
  CHECK(contains(refusal(one_item("{},", "{\"top_p\": 2},")), "top_p"));
  CHECK(contains(refusal(one_item("{},", "{\"speed\": 2},")), "temperature, top_p or top_k"));
  CHECK(contains(refusal(one_item("\"seed\": 1,", "\"seed\": 1, \"note\": 1,")), "alone"));
  CHECK(contains(refusal(R"({"schema": "drama3-corpus/1", "items": []})"), "at least one"));
}

TEST_CASE("filters take the ids that match one of their patterns") {
  const std::vector<CorpusItem> items = read_corpus(kCorpus);
  CHECK(filter_items(items, "").size() == 24);
  CHECK(filter_items(items, "short-*").size() == 6);
  CHECK(filter_items(items, "edge-0[12],long-05").size() == 3);
  CHECK(filter_items(items, "short-0?,short-01").size() == 6);
  CHECK_THROWS_AS(filter_items(items, "short-01,none-*"), Error);
  CHECK_THROWS_AS(filter_items(items, ","), Error);
}

TEST_CASE("what decides an item's bytes changes its digest") {
  const CorpusItem item{.id = "a", .text = "Hi.", .seed = 1, .max_frames = 9};
  std::set<std::string> digests{request_digest(item)};
  CorpusItem other = item;
  other.text = "Ho.";
  digests.insert(request_digest(other));
  other = item;
  other.temperature = 1.0;
  digests.insert(request_digest(other));
  other = item;
  other.top_p = 1.0;
  digests.insert(request_digest(other));
  other = item;
  other.seed = 2;
  digests.insert(request_digest(other));
  other = item;
  other.max_frames = 8;
  digests.insert(request_digest(other));
  CHECK(digests.size() == 6);
}

TEST_CASE("figures: median, deviation, nearest rank") {
  const Summary one = summarise({3.0});
  CHECK(one.median == 3.0);
  CHECK_FALSE(one.stddev.has_value());
  const Summary four = summarise({4.0, 1.0, 3.0, 2.0});
  CHECK(four.median == 2.5);
  CHECK(four.mean == 2.5);
  CHECK(*four.stddev == doctest::Approx(std::sqrt(5.0 / 3.0)));
  CHECK_FALSE(four.p95.has_value());
  std::vector<double> many;
  for (int i = 48; i >= 1; --i) many.push_back(i);
  CHECK(*summarise(many).p95 == 46.0);
  many.resize(20);
  CHECK(*summarise(many).p95 == 47.0);
}

TEST_CASE("options: what cannot be run is refused with its range") {
  CHECK(option_refusal({"--corpus"}) == "accepted");
  CHECK(option_refusal({"--corpus", "my.json", "--report", "/tmp/a.html", "--report", "/tmp/b.md"}) ==
        "accepted");
  CHECK(contains(option_refusal({}), "write drama3-bench --corpus"));
  CHECK(contains(option_refusal({"--corpus=a.json", "b.json"}), "'b.json'"));
  CHECK(contains(option_refusal({"--corpus", "--passes", "0"}),
                 "--passes: expected a whole number from 1 to 100"));
  CHECK(contains(option_refusal({"--corpus", "--warmup", "-1"}), "--warmup"));
  CHECK(contains(option_refusal({"--corpus", "--max-rtf", "0"}), "above 0"));
  CHECK(contains(option_refusal({"--corpus", "--report", "/tmp/a.pdf"}), ".html or .md"));
  CHECK(contains(option_refusal({"--corpus", "--passes", "1", "--passes", "2"}), "expected once"));
  const std::vector<const char*> arguments{"--corpus", "--report", "/tmp/a.html", "--report", "/tmp/b.md"};
  CHECK(read_bench_options(CommandLine(Tool::kBench, arguments)).reports.size() == 2);
}

TEST_CASE("a picture shows a tone at its frequency and the level of its samples") {
  std::vector<float> samples(44100);
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i] = 0.5f * static_cast<float>(
                            std::sin(2.0 * std::numbers::pi * 3000.0 * static_cast<double>(i) / 44100.0));
  }
  const SoundPicture picture = draw_sound("tone", samples, 44100);
  const auto column = static_cast<size_t>(kPictureColumns / 2);
  CHECK(picture.high[column] == doctest::Approx(0.5f).epsilon(0.02));
  size_t loudest = 0;
  for (size_t row = 0; row < static_cast<size_t>(kPictureRows); ++row) {
    const auto at = [&](size_t r) {
      return picture.loudness[r * static_cast<size_t>(kPictureColumns) + column];
    };
    if (at(row) > at(loudest)) loudest = row;
  }
  const double hertz =
      (static_cast<double>(loudest) + 0.5) * picture.top_hertz / static_cast<double>(kPictureRows);
  CHECK(std::abs(hertz - 3000.0) < 80.0);
}

TEST_CASE("JSON keeps every sample; the page needs nothing from elsewhere") {
  const Plan plan{.items = {{.id = "one",
                             .category = "a<b",
                             .text = "Hello, \"world\" & <all>.",
                             .seed = 1,
                             .max_frames = 900}},
                  .passes = 3,
                  .show_patterns = "*"};
  Report report = report_of(plan);
  report.facts = machine_facts();
  report.rules = rules_of(plan);
  const auto document = nlohmann::json::parse(json_text(report));
  CHECK(document["schema"] == "drama3-bench/1");
  CHECK(document["results"][0]["samples"]["compute_seconds"].size() == 3);
  CHECK(document["results"][0]["samples"]["stages"]["tower"].size() == 3);
  CHECK(document["results"][0]["summary"]["rtf"]["p95"].is_null());
  CHECK(document["results"][0]["summary"]["rtf"]["n"] == 3);
  CHECK(document["context"]["cores"].is_number_unsigned());
  CHECK(document["totals"]["requests"] == 3);

  const std::string page = html_text(report);
  CHECK(contains(page, "<svg"));
  CHECK(contains(page, "data:image/bmp;base64,"));
  CHECK(contains(page, "a&lt;b"));
  CHECK_FALSE(contains(page, "a<b"));
  for (const char* outside : {"http:", "https:", "<script", "<link", "src=", "@import", "url("}) {
    CHECK_FALSE(contains(page, outside));
  }
  CHECK(contains(markdown_text(report), "## Gates"));
}

TEST_CASE("an engine that answers nothing still gives a report without figures") {
  const Plan plan{.items = {{.id = "one", .category = "a", .text = "Hello.", .seed = 1, .max_frames = 900}}};
  FakeEngine engine(Fault::kRefuses);
  const std::vector<RankRecord> ranks{run_share(engine, plan, 0, {})};
  const Report report = make_report(plan, ranks, judge(plan, ranks, {}));
  CHECK(contains(table_text(report), "INVALID"));
  CHECK(contains(html_text(report), "No valid figures"));
  CHECK(nlohmann::json::parse(json_text(report))["totals"]["rtf"].is_null());
}

}  // namespace drama3::bench
