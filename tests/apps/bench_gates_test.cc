// Every gate of drama3-bench passes on a sound engine and fails on one with the fault that it is there for.
#include "apps/bench_gates.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "apps/bench_exchange.h"
#include "apps/bench_report.h"
#include "apps/bench_stream.h"
#include "tests/apps/fake_engine.h"

namespace drama3::bench {
namespace {

// Two free items and a capped one.
Plan small_plan() {
  return {
      .items =
          {{.id = "one", .category = "short", .text = "Hello, my dear world.", .seed = 1, .max_frames = 900},
           {.id = "two",
            .category = "short",
            .text = "Good evening.|And good night.",
            .seed = 2,
            .max_frames = 900},
           {.id = "cut",
            .category = "long",
            .text = "This one is cut before its end.",
            .seed = 3,
            .max_frames = 17,
            .capped = true}},
      .passes = 2};
}

RankRecord record_of(Fault fault, const Plan& plan = small_plan()) {
  FakeEngine engine(fault);
  return run_share(engine, plan, 0, {});
}

Verdict verdict_of(Fault fault, const Judgement& judgement = {}) {
  return judge(small_plan(), {record_of(fault)}, judgement);
}

Gate gate_of(const Verdict& verdict, const std::string& name) {
  for (const Gate& gate : verdict.gates) {
    if (gate.name == name) return gate;
  }
  FAIL("no gate " << name);
  return {};
}

bool fails(const std::string& name, Fault fault) {
  const Gate gate = gate_of(verdict_of(fault), name);
  return gate.failed > 0 && gate.checked >= gate.failed && !gate.first_failure.empty();
}

// The baseline that a sound engine's run leaves, read back from its file.
Baseline recorded_baseline() {
  const auto folder = std::filesystem::temp_directory_path() / "drama3_bench_test";
  const std::string corpus = (folder / "corpus.json").string();
  const RankRecord record = record_of(Fault::kNone);
  const std::string path = baseline_path(corpus, "cpu", record.checkpoint_hash);
  write_baseline({.path = path, .backend = "cpu", .checkpoint = record.checkpoint_hash}, small_plan().items,
                 record.requests);
  const auto baseline = read_baseline(path);
  std::filesystem::remove_all(folder);
  REQUIRE(baseline.has_value());
  return *baseline;
}

}  // namespace

TEST_CASE("a sound engine passes every gate, and each of them was tested") {
  const Verdict verdict = verdict_of(Fault::kNone, {.baseline = recorded_baseline(), .max_rtf = 1.0});
  CHECK(verdict.gates.size() == 17);
  for (const Gate& gate : verdict.gates) {
    CAPTURE(gate.name);
    CAPTURE(gate.first_failure);
    CHECK(gate.checked > 0);
    CHECK(gate.failed == 0);
  }
  for (const auto& reasons : verdict.reasons) CHECK(reasons.empty());
}

TEST_CASE("each fault of an engine fails its gate") {
  CHECK(fails("completed", Fault::kRefuses));
  CHECK(fails("passes-equal", Fault::kDrifts));
  CHECK(fails("capped-exactly", Fault::kIgnoresCap));
  CHECK(fails("capped-exactly", Fault::kIgnoresItsEnd));
  CHECK(fails("ends-by-itself", Fault::kNeverEnds));
  CHECK(fails("ends-by-itself", Fault::kRefuses));
  CHECK(fails("passes-equal", Fault::kRefuses));
  CHECK(fails("plausible", Fault::kSilent));
  CHECK(fails("plausible", Fault::kLoud));
  CHECK(fails("plausible", Fault::kBriefest));
  CHECK(fails("plausible", Fault::kEndless));
  CHECK(fails("plausible", Fault::kImpossibleTimes));
  CHECK(fails("memory", Fault::kLeaks));
}

TEST_CASE("each fault of a stream fails its check") {
  CHECK(fails("stream-joined", Fault::kLosesBetweenGroups));
  CHECK(fails("stream-joined", Fault::kCountsWrong));
  CHECK(fails("stream-prefixes", Fault::kRepeatsEvents));
  CHECK(fails("stream-prefixes", Fault::kLosesBetweenGroups));
  CHECK(fails("stream-first", Fault::kFirstOfTwo));
  CHECK(fails("stream-groups", Fault::kFirstOfTwo));
  CHECK(fails("stream-groups", Fault::kGroupsOfAll));
  CHECK(fails("stream-policies", Fault::kFollowsPolicy));
  CHECK(fails("stream-cancel", Fault::kIgnoresSink));
  CHECK(fails("stream-cancel", Fault::kIgnoresStop));
  CHECK(fails("stream-slow-reader", Fault::kDropsWhenSlow));
  CHECK(fails("stream-error", Fault::kSwallowsErrors));
  CHECK(fails("stream-again", Fault::kStaleAfterCancel));
  CHECK(fails("stream-again", Fault::kStaleAfterError));
}

TEST_CASE("the request after a fault is told by the check it follows") {
  const Verdict verdict = verdict_of(Fault::kStaleAfterCancel);
  CHECK(gate_of(verdict, "stream-again").failed == 1);
  CHECK(gate_of(verdict, "stream-again").first_failure.find("after stream-cancel") != std::string::npos);
}

TEST_CASE("streams of several pieces keep the policy within each piece") {
  FakeEngine engine;
  const Plan plan = small_plan();
  const RankRecord record = record_of(Fault::kNone);
  const auto usual = std::find_if(record.requests.begin(), record.requests.end(),
                                  [](const RequestRecord& request) { return request.item == 1; });
  for (const Gate& gate :
       check_stream_rules(engine, {.request = request_of(plan.items[1], {}), .usual = *usual})) {
    CAPTURE(gate.first_failure);
    CHECK(gate.checked > 0);
    CHECK(gate.failed == 0);
  }
}

TEST_CASE("the baseline gate fails on other bytes, another request, an unknown item, another checkpoint") {
  const Baseline recorded = recorded_baseline();
  CHECK(recorded.items.size() == 3);
  CHECK(gate_of(verdict_of(Fault::kNone), "baseline").checked == 0);
  CHECK(gate_of(verdict_of(Fault::kNone, {.baseline = recorded}), "baseline").checked == 7);
  CHECK(gate_of(verdict_of(Fault::kOtherSound, {.baseline = recorded}), "baseline").failed == 6);
  // The same wrong bytes in both passes are what only the baseline can see.
  CHECK(gate_of(verdict_of(Fault::kOtherSound, {.baseline = recorded}), "passes-equal").failed == 0);

  Baseline other = recorded;
  other.items.erase("two");
  CHECK(gate_of(verdict_of(Fault::kNone, {.baseline = other}), "baseline").failed == 2);
  other = recorded;
  other.items["two"].request = "of another text";
  CHECK(gate_of(verdict_of(Fault::kNone, {.baseline = other}), "baseline").failed == 2);
  other = recorded;
  other.checkpoint = std::string(64, 'd');
  CHECK(gate_of(verdict_of(Fault::kNone, {.baseline = other}), "baseline").failed == 1);
  other = recorded;
  other.backend = "cuda";
  CHECK(gate_of(verdict_of(Fault::kNone, {.baseline = other}), "baseline").failed == 1);
}

TEST_CASE("the ceiling of the RTF is a gate only where one is asked for, and leaves figures valid") {
  const Verdict free = verdict_of(Fault::kNone);
  CHECK(std::none_of(free.gates.begin(), free.gates.end(),
                     [](const Gate& gate) { return gate.name == "rtf-ceiling"; }));
  const Verdict tight = verdict_of(Fault::kNone, {.max_rtf = 0.001});
  CHECK(gate_of(tight, "rtf-ceiling").failed == 3);
  for (const auto& reasons : tight.reasons) CHECK(reasons.empty());
  CHECK(gate_of(verdict_of(Fault::kNone, {.max_rtf = 0.02}), "rtf-ceiling").failed == 0);
}

TEST_CASE("a figure whose gate failed is not printed as a speed") {
  const Plan plan = small_plan();
  const std::vector<RankRecord> ranks{record_of(Fault::kIgnoresCap)};
  const Report report = make_report(plan, ranks, judge(plan, ranks, {}));
  CHECK(report.rows[0].valid());
  CHECK_FALSE(report.rows[2].valid());
  CHECK(report.totals.requests == 6);
  CHECK(report.totals.valid_requests == 4);
  const std::string table = table_text(report);
  const size_t begin = table.find("| cut ");
  const std::string line = table.substr(begin, table.find('\n', begin) - begin);
  CHECK(line.find("INVALID") != std::string::npos);
  CHECK(line.find("0.01") == std::string::npos);
  CHECK(line.find("capped-exactly failed") != std::string::npos);
  CHECK(json_text(report).find("\"valid\": false") != std::string::npos);
  CHECK(html_text(report).find("INVALID") != std::string::npos);
  CHECK(closing_text(report.gates).find(", 0 failed") == std::string::npos);
}

TEST_CASE("ranks share the requests, and each pass of an item is another rank's") {
  Plan plan = small_plan();
  plan.ranks = 2;
  for (size_t item = 0; item < plan.items.size(); ++item) {
    for (int pass = 1; pass <= 4; ++pass) {
      CHECK(is_mine(plan, item, pass, 0) != is_mine(plan, item, pass, 1));
      CHECK(is_mine(plan, item, pass, 0) != is_mine(plan, item, pass + 1, 0));
    }
  }
}

TEST_CASE(
    "gates hold across ranks: sound ranks pass, a rank with another sound fails, a missing share fails") {
  Plan plan = small_plan();
  plan.ranks = 2;
  FakeEngine first, second, odd(Fault::kOtherSound);
  const RankRecord a = run_share(first, plan, 0, {});
  const RankRecord b = record_of_text(record_text(run_share(second, plan, 1, {})));
  const RankRecord c = run_share(odd, plan, 1, {});
  CHECK(a.requests.size() + b.requests.size() == 6);
  const Verdict sound = judge(plan, {a, b}, {});
  CHECK(sound.failed_gates() == 0);
  CHECK(gate_of(sound, "passes-equal").checked == 3);
  CHECK(gate_of(judge(plan, {a, c}, {}), "passes-equal").failed == 3);
  CHECK(gate_of(judge(plan, {a}, {}), "completed").failed == 3);
  check_ranks_agree({a, b});
}

TEST_CASE("a rank that failed, or has another checkpoint, is named") {
  const RankRecord good = record_of(Fault::kNone);
  RankRecord bad = good;
  bad.rank = 1;
  bad.error = "the disk is gone";
  CHECK_THROWS_WITH_AS(check_ranks_agree({good, bad}), "rank 1: the disk is gone", Error);
  bad.error.clear();
  bad.checkpoint_hash = "other";
  CHECK_THROWS_AS(check_ranks_agree({good, bad}), Error);
  bad.checkpoint_hash = good.checkpoint_hash;
  bad.engine.device = "cuda:1";
  CHECK_THROWS_AS(check_ranks_agree({good, bad}), Error);
}

TEST_CASE("a record survives its way from rank to rank with every bit") {
  const RankRecord before = record_of(Fault::kNone);
  const RankRecord after = record_of_text(record_text(before));
  CHECK(record_text(after) == record_text(before));
  CHECK(after.requests[1].sha256 == before.requests[1].sha256);
  CHECK(after.requests[1].finish == before.requests[1].finish);
  CHECK(after.stream_gates.size() == 9);
}

}  // namespace drama3::bench
