// An engine all of whose work is done by one thread of its own, whichever threads call it: which device is
// current is a thread's own state.
#pragma once

#include <functional>
#include <memory>

#include "lib/engine/engine.h"

namespace drama3 {

// The engine that `open` gives, opened, used and destroyed on one thread. Sinks are called on the caller's
// thread; errors of `open`, of the engine and of sinks reach the caller as they are.
std::unique_ptr<Engine> open_on_worker(const std::function<std::unique_ptr<Engine>()>& open);

}  // namespace drama3
