// An engine on a worker: one thread for all its work, sinks on the caller's, errors passed on, callers in
// turn.
#include <doctest/doctest.h>

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/error.h"
#include "lib/engine/worker_engine.h"

using namespace drama3;

namespace {

// What a FakeEngine saw, which outlives it.
struct Seen {
  std::set<std::thread::id> threads;
};

class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(Seen& seen) : seen_(seen) { seen_.threads.insert(std::this_thread::get_id()); }
  ~FakeEngine() override { seen_.threads.insert(std::this_thread::get_id()); }

  const EngineInfo& info() const override { return info_; }
  SamplingSettings default_sampling() const override { return {.temperature = 0.25f}; }
  std::string checkpoint_hash() const override {
    seen_.threads.insert(std::this_thread::get_id());
    return "hash";
  }
  // As many events as the text has bytes, until one is refused.
  SpeechResult speak(const SpeechRequest& request, const SpeechSink& sink) override {
    seen_.threads.insert(std::this_thread::get_id());
    SpeechResult result;
    const auto length = static_cast<int64_t>(request.text.size());
    while (result.frames < length && (!sink || sink({.frames = result.frames + 1}))) ++result.frames;
    if (request.text == "fail") fail("frame 4: made to fail");
    return result;
  }

 private:
  Seen& seen_;
  EngineInfo info_{.model = "fake"};
};

}  // namespace

TEST_CASE("an engine on a worker is opened, used and closed by one thread; its sink runs on the caller's") {
  Seen seen;
  const std::thread::id caller = std::this_thread::get_id();
  {
    const auto engine = open_on_worker([&] { return std::make_unique<FakeEngine>(seen); });
    CHECK(engine->info().model == "fake");
    CHECK(engine->default_sampling().temperature == 0.25f);
    CHECK(engine->checkpoint_hash() == "hash");
    std::set<std::thread::id> sinks;
    int64_t heard = 0;
    const SpeechResult result = engine->speak({.text = "abcde"}, [&](const SpeechEvent& event) {
      sinks.insert(std::this_thread::get_id());
      heard = event.frames;
      return event.frames < 4;
    });
    CHECK(heard == 4);
    CHECK(result.frames == 3);
    CHECK(sinks == std::set<std::thread::id>{caller});
    CHECK(engine->speak({.text = "abcde"}, {}).frames == 5);
  }
  CHECK(seen.threads.size() == 1);
  CHECK(seen.threads.count(caller) == 0);
}

TEST_CASE("errors of opening, speaking and sinks reach the caller, and the next call works") {
  CHECK_THROWS_WITH_AS(open_on_worker([]() -> std::unique_ptr<Engine> { fail("no such device"); }),
                       "no such device", Error);
  Seen seen;
  const auto engine = open_on_worker([&] { return std::make_unique<FakeEngine>(seen); });
  CHECK_THROWS_WITH_AS(engine->speak({.text = "fail"}, {}), "frame 4: made to fail", Error);
  CHECK_THROWS_AS(engine->speak({.text = "abc"}, [](const SpeechEvent&) -> bool { throw 7; }), int);
  CHECK(engine->speak({.text = "abc"}, [](const SpeechEvent&) { return true; }).frames == 3);
}

TEST_CASE("callers of several threads take turns, a whole request each") {
  constexpr int kCallers = 4, kRequests = 50, kEvents = 3;
  Seen seen;
  const auto engine = open_on_worker([&] { return std::make_unique<FakeEngine>(seen); });
  std::mutex mutex;
  std::vector<std::thread::id> sinks;  // of all events, in order
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      for (int n = 0; n < kRequests; ++n) {
        engine->speak({.text = std::string(kEvents, 'a')}, [&](const SpeechEvent&) {
          const std::lock_guard lock(mutex);
          sinks.push_back(std::this_thread::get_id());
          return true;
        });
      }
    });
  }
  std::map<std::thread::id, int> wanted;
  for (std::thread& caller : callers) wanted[caller.get_id()] = kRequests * kEvents;
  for (std::thread& caller : callers) caller.join();
  REQUIRE(sinks.size() == kCallers * kRequests * kEvents);
  for (size_t i = 0; i < sinks.size(); ++i) {
    CHECK(sinks[i] == sinks[i / kEvents * kEvents]);
    --wanted[sinks[i]];
  }
  for (const auto& [thread, left] : wanted) CHECK(left == 0);
  CHECK(seen.threads.size() == 1);
}
