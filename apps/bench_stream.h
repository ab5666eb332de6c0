// The nine stream checks: what a listener to the events of one request may rely on.
#pragma once

#include <vector>

#include "apps/bench_record.h"

namespace drama3::bench {

// The request that is spoken again and again, and what it gave in the passes.
struct StreamSubject {
  SpeechRequest request;
  RequestRecord usual;
};

// Speaks the request some thirty times and returns the nine gates, in their order.
std::vector<Gate> check_stream_rules(Engine& engine, const StreamSubject& subject);

// The nine gates with nothing checked.
std::vector<Gate> unchecked_stream_gates();

}  // namespace drama3::bench
