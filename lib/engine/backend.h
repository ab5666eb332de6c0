// The one place that turns a device name into a backend.
#pragma once

#include <memory>
#include <string>

#include "lib/engine/engine.h"
#include "lib/ops/ops.h"

namespace drama3 {

// A backend and how it was chosen.
struct Backend {
  std::unique_ptr<Ops> ops;
  DeviceInfo device;
  std::string reason;    // why "auto" took it; empty for an explicit device
  std::string cpu_path;  // instruction set of the CPU backend; empty elsewhere
  int threads = 0;       // of the CPU backend; 0 elsewhere
};

// device: auto | cpu | ref | cuda | cuda:N. Error naming what was found when an explicit device is not
// usable; auto falls back to the CPU and says why.
Backend open_backend(const std::string& device, int threads);

// Physical cores within the process's affinity mask and cgroup quota, at least 1.
int default_threads();

}  // namespace drama3
