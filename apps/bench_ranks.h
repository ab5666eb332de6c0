// The processes of one run: one without MPI, those of mpirun with it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/engine/engine.h"

namespace drama3::bench {

// This process among those of the run. A process that dies by a signal takes the run with it, and mpirun
// names it.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Among the processes of this machine.
  virtual int local_rank() const = 0;
  virtual int local_size() const = 0;
  // Every rank's text on rank 0, by rank; nothing on the others. All ranks call it.
  virtual std::vector<std::string> gather(const std::string& text) = 0;
};

// The processes of mpirun where this build has MPI and mpirun started this process, else this one alone.
std::unique_ptr<Ranks> open_ranks();

// What one process opens: with several, each takes its own CUDA device, or its part of the cores. Error when
// this machine has fewer devices than processes, or one device is named for all.
EngineOptions engine_of_rank(const Ranks& ranks, EngineOptions options);

}  // namespace drama3::bench
