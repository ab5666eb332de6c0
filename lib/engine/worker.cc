// The worker's thread, and the wait of its caller.
#include "lib/engine/worker.h"

#include <utility>

#include "lib/base/check.h"

namespace drama3 {
namespace {

std::exception_ptr error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

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
    lock.unlock();
    std::exception_ptr error = error_of(*call_);
    lock.lock();
    call_error_ = std::move(error);
    call_ = nullptr;
    changed_.notify_all();
  }
  caller_ = std::thread::id();
  rethrow(task_error_);
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
    lock.unlock();
    std::exception_ptr error = error_of(*task_);
    lock.lock();
    task_error_ = std::move(error);
    task_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace drama3
