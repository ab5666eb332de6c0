// One thread that runs tasks for callers who wait, and can call back to the caller it works for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace drama3 {

class Worker {
 public:
  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs the task on the worker's thread, returns when it is done, and rethrows what it throws. Callers of
  // several threads take turns; a task, or what it calls back, must not call it again.
  void run(const std::function<void()>& task);
  // Within a task: runs `call` on the thread that waits for the task, returns when it is done, and rethrows
  // what it throws.
  void on_caller(const std::function<void()>& call);

 private:
  void work();
  // Does what was handed over, without the lock meanwhile; takes it down, keeps its error, and tells.
  void serve(std::unique_lock<std::mutex>& lock, const std::function<void()>*& handed,
             std::exception_ptr& error);

  std::mutex turn_;                        // held by the caller whose task runs
  std::atomic<std::thread::id> caller_{};  // that caller
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* task_ = nullptr;  // until it is done
  const std::function<void()>* call_ = nullptr;  // until it is done
  std::exception_ptr task_error_, call_error_;
  bool ending_ = false;
  std::thread thread_;  // last: it uses all of these
};

}  // namespace drama3
