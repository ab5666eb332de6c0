// Single ops with recorded inputs and outputs, to be replayed on another backend.
#pragma once

#include <string>

#include "apps/oracle_replay.h"

namespace drama3 {

// Runs every op of the list on this backend, each fed what the ones before it gave, and keeps inputs and
// outputs in the dump's ops.safetensors as "<op>.<name>".
void record_ops(Replay& replay);

// Feeds one op (or with "all" each) the recorded inputs and compares its outputs with the recorded ones;
// weights are the model's. Error that lists the ops for another name, or when the reference holds no
// recording.
void replay_op(Replay& replay, const std::string& name);

}  // namespace drama3
