// Every call of an engine as a task of its worker.
#include "lib/engine/worker_engine.h"

#include "lib/engine/worker.h"

namespace drama3 {
namespace {

class WorkerEngine final : public Engine {
 public:
  explicit WorkerEngine(const std::function<std::unique_ptr<Engine>()>& open) {
    worker_.run([&] { engine_ = open(); });
  }
  ~WorkerEngine() override {
    worker_.run([this] { engine_.reset(); });
  }

  const EngineInfo& info() const override { return engine_->info(); }
  SamplingSettings default_sampling() const override { return engine_->default_sampling(); }
  std::string checkpoint_hash() const override {
    std::string hash;
    worker_.run([&] { hash = engine_->checkpoint_hash(); });
    return hash;
  }
  SpeechResult speak(const SpeechRequest& request, const SpeechSink& sink) override {
    const SpeechSink handed_over = [&](const SpeechEvent& event) {
      bool goes_on = true;
      const auto call = [&] { goes_on = sink(event); };
      worker_.on_caller(std::ref(call));
      return goes_on;
    };
    SpeechResult result;
    worker_.run([&] { result = engine_->speak(request, sink ? handed_over : SpeechSink{}); });
    return result;
  }

 private:
  mutable Worker worker_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace

std::unique_ptr<Engine> open_on_worker(const std::function<std::unique_ptr<Engine>()>& open) {
  return std::make_unique<WorkerEngine>(open);
}

}  // namespace drama3
