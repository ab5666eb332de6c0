// The CUDA backend of a build without CUDA: no devices, and a factory that says so.
#include "kernels/cuda/cuda_backend.h"
#include "lib/base/error.h"

namespace drama3 {

std::vector<CudaDevice> list_cuda_devices() { return {}; }

std::unique_ptr<Ops> make_cuda_ops(const CudaOptions& options) {
  fail("device cuda:", options.device,
       ": expected a build with CUDA, got one without; configure with -DDRAMA3_CUDA=ON or use --device cpu");
}

CudaCounters cuda_counters(const Ops&) { return {}; }

std::string cuda_build() { return "without CUDA"; }

}  // namespace drama3
