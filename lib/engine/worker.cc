// The worker's thread, and the wait of its caller.
#include "lib/engine/worker.h"

#include <utility>

#include "lib/base/check.h"

namespace drama3 {
namespace {

void rethrow(std::exception_ptr& error) {
  if (error != nullptr) std::rethrow_exception(std::exchange(error, nullptr));
}

}  // namespace

Worker::Worker() : thread_([this] { work(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::run(const std::function<void()>& task) {
  INVARIANT(caller_.load() != std::this_thread::get_id(), "a call from within a sink");
  const std::lock_guard turn(turn_);
  caller_ = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  task_ = &task;
  changed_.notify_all();
  for (;;) {
    changed_.wait(lock, [this] { return task_ == nullptr || call_ != nullptr; });
    if (task_ == nullptr) break;
    serve(lock, call_, call_error_);
  }
  caller_ = std::thread::id();
  rethrow(task_error_);
}

void Worker::serve(std::unique_lock<std::mutex>& lock, const std::function<void()>*& handed,
                   std::exception_ptr& error) {
  const std::function<void()>& body = *handed;
  lock.unlock();
  std::exception_ptr thrown;
  try {
    body();
  } catch (...) {
    thrown = std::current_exception();
  }
  lock.lock();
  error = std::move(thrown);
  handed = nullptr;
  changed_.notify_all();
}

void Worker::on_caller(const std::function<void()>& call) {
  std::unique_lock lock(mutex_);
  call_ = &call;
  changed_.notify_all();
  changed_.wait(lock, [this] { return call_ == nullptr; });
  rethrow(call_error_);
}

void Worker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return task_ != nullptr || ending_; });
    if (task_ == nullptr) return;
    serve(lock, task_, task_error_);
  }
}

}  // namespace drama3
