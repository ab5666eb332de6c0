// Opening a device, memory and movement of data, and the recording of steps.
#include "kernels/cuda/cuda_ops.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/image.h"
#include "lib/base/check.h"
#include "lib/base/scalars.h"

namespace drama3 {
namespace {

constexpr int64_t kBounceBytes = 8 << 20;
constexpr int64_t kPartialBytes =
    16 << 20;  // partial attention of one row over 60,000 positions of 4096 columns

size_t row_bytes(const View& view) { return static_cast<size_t>(view.cols()) * dtype_size(view.type); }

uint16_t narrowed(float value, DType type) {
  return type == DType::kBF16 ? float_to_bf16(value) : float_to_f16(value);
}
float widened(uint16_t bits, DType type) {
  return type == DType::kBF16 ? bf16_to_float(bits) : f16_to_float(bits);
}

int device_attribute(int device, cudaDeviceAttr attribute) {
  int value = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

// Dynamic shared memory of a block that streams weights: half of a multiprocessor's, so that the next
// launch's blocks fit beside it, unless that is too little to stream well.
int streaming_bytes(int device) {
  constexpr int kReserved = 2048;  // static memory and what the device keeps of every block
  constexpr int kEnough = 96 << 10;
  const int half = device_attribute(device, cudaDevAttrMaxSharedMemoryPerMultiprocessor) / 2 - kReserved;
  return half >= kEnough ? half
                         : device_attribute(device, cudaDevAttrMaxSharedMemoryPerBlockOptin) - kReserved;
}

cudaStream_t new_stream(CudaOps::Priority priority) {
  int least = 0, greatest = 0;
  CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                          priority == CudaOps::Priority::kFirst ? greatest : least));
  return stream;
}

// Rows of one bounce buffer.
int64_t rows_at_once(const View& view) {
  return std::max<int64_t>(1, kBounceBytes / std::max<int64_t>(1, static_cast<int64_t>(row_bytes(view))));
}

}  // namespace

CudaOps::CudaOps(const CudaOptions& options, Priority priority) : options_(options) {
  CUDA_CHECK(cudaSetDevice(options.device));
  if (options.memory_limit > 0) MemoryBudget::process().set_limit(options.memory_limit);
  queue_.stream = new_stream(priority);
  const ImageFeatures features = image_features(runtime_image_driver(), options.device);
  queue_.overlap = options.overlap && features.overlap;
  queue_.clusters = features.clusters;
  queue_.processors = device_attribute(options.device, cudaDevAttrMultiProcessorCount);
  queue_.shared_limit = streaming_bytes(options.device);
  bounce_ = pinned_memory(kBounceBytes);
  mail_ = pinned_memory(kMailSlots * kMailBytes);
  for (cudaEvent_t& event : mailed_) CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  partial_ = device_memory(kPartialBytes, queue_.stream);
  arrivals_ = device_memory((kRoutedFlag + 2) * static_cast<int64_t>(sizeof(int)), queue_.stream);
  staging_ = std::make_unique<StagingRing>(queue_.stream, options.direct);
}

CudaOps::~CudaOps() {
  beside_.reset();
  cudaStreamSynchronize(queue_.stream);
  for (auto& [key, step] : steps_) {
    if (step.graph != nullptr) cudaGraphExecDestroy(step.graph);
  }
  staging_.reset();
  weights_.clear();
  for (cudaEvent_t event : mailed_) cudaEventDestroy(event);
  cudaStreamDestroy(queue_.stream);
}

CudaCounters CudaOps::counters() const {
  const MemoryBudget& budget = MemoryBudget::process();
  return {.launches = queue_.launches + graph_launches_,
          .allocations = budget.allocations(),
          .bytes = budget.used(),
          .peak_bytes = budget.peak(),
          .read = staging_->counts()};
}

LaunchQueue& CudaOps::queue() {
  if (weights_moving_) {
    weights_moving_ = false;
    staging_->finish();  // kernels load weights before they wait for anything
  }
  pending_.flush(queue_);
  return queue_;
}

Buffer CudaOps::allocate(DType type, const Shape& shape) {
  CUDA_CHECK(cudaSetDevice(options_.device));
  View view(nullptr, type, shape, Place::kDevice);
  std::shared_ptr<void> memory = device_memory(static_cast<int64_t>(view.bytes()), queue_.stream);
  view.data = memory.get();
  return {view, memory};
}

void CudaOps::upload(const View& out, const View& host) {
  INVARIANT(out.rows() == host.rows() && out.cols() == host.cols() && out.place == Place::kDevice,
            out.shape.text(), " from ", host.shape.text());
  INVARIANT(out.type == host.type || host.type == DType::kF32, "host rows are F32, not ",
            dtype_name(host.type));
  LaunchQueue& work = queue();
  const int64_t step = rows_at_once(out);
  const size_t bytes = row_bytes(out);
  for (int64_t begin = 0; begin < out.rows(); begin += step) {
    const int64_t rows = std::min(step, out.rows() - begin);
    for (int64_t r = 0; r < rows; ++r) {
      std::byte* to = static_cast<std::byte*>(bounce_.get()) + static_cast<size_t>(r) * bytes;
      const std::byte* from = static_cast<const std::byte*>(host.data) +
                              static_cast<size_t>((begin + r) * host.row_stride) * dtype_size(host.type);
      if (out.type == host.type) {
        std::memcpy(to, from, bytes);
        continue;
      }
      for (int64_t c = 0; c < out.cols(); ++c) {
        float value;
        std::memcpy(&value, from + static_cast<size_t>(c) * sizeof value, sizeof value);
        const uint16_t bits = narrowed(value, out.type);
        std::memcpy(to + static_cast<size_t>(c) * sizeof bits, &bits, sizeof bits);
      }
    }
    const View part = View(out).rows_from(begin, rows);
    CUDA_CHECK(cudaMemcpy2DAsync(part.data, static_cast<size_t>(out.row_stride) * dtype_size(out.type),
                                 bounce_.get(), bytes, bytes, static_cast<size_t>(rows),
                                 cudaMemcpyHostToDevice, work.stream));
    CUDA_CHECK(cudaStreamSynchronize(work.stream));  // the bounce buffer is free again
  }
}

void CudaOps::download(const View& host, const View& in) {
  INVARIANT(in.rows() == host.rows() && in.cols() == host.cols() && in.place == Place::kDevice,
            host.shape.text(), " from ", in.shape.text());
  INVARIANT(in.type == host.type || host.type == DType::kF32, "host rows are F32, not ",
            dtype_name(host.type));
  LaunchQueue& work = queue();
  const int64_t step = rows_at_once(in);
  const size_t bytes = row_bytes(in);
  for (int64_t begin = 0; begin < in.rows(); begin += step) {
    const int64_t rows = std::min(step, in.rows() - begin);
    const View part = View(in).rows_from(begin, rows);
    CUDA_CHECK(cudaMemcpy2DAsync(bounce_.get(), bytes, part.data,
                                 static_cast<size_t>(in.row_stride) * dtype_size(in.type), bytes,
                                 static_cast<size_t>(rows), cudaMemcpyDeviceToHost, work.stream));
    CUDA_CHECK(cudaStreamSynchronize(work.stream));
    for (int64_t r = 0; r < rows; ++r) {
      const std::byte* from = static_cast<const std::byte*>(bounce_.get()) + static_cast<size_t>(r) * bytes;
      std::byte* to = static_cast<std::byte*>(host.data) +
                      static_cast<size_t>((begin + r) * host.row_stride) * dtype_size(host.type);
      if (in.type == host.type) {
        std::memcpy(to, from, bytes);
        continue;
      }
      for (int64_t c = 0; c < in.cols(); ++c) {
        uint16_t bits;
        std::memcpy(&bits, from + static_cast<size_t>(c) * sizeof bits, sizeof bits);
        const float value = widened(bits, in.type);
        std::memcpy(to + static_cast<size_t>(c) * sizeof value, &value, sizeof value);
      }
    }
  }
}

// A launch writes to the host's memory: the copy engine would be waited for by what comes after it.
void CudaOps::send(int slot, const View& in) {
  INVARIANT(in.dense() && static_cast<int64_t>(in.bytes()) <= kMailBytes, "mail of ", in.bytes());
  LaunchQueue& work = queue();
  copy_rows(work,
            View(static_cast<std::byte*>(mail_.get()) + slot * kMailBytes, in.type, in.shape, Place::kDevice),
            in);
  CUDA_CHECK(cudaEventRecord(mailed_.at(static_cast<size_t>(slot)), work.stream));
}

void CudaOps::receive(const View& host, int slot) {
  INVARIANT(host.dense() && static_cast<int64_t>(host.bytes()) <= kMailBytes, "mail of ", host.bytes());
  CUDA_CHECK(cudaEventSynchronize(mailed_.at(static_cast<size_t>(slot))));
  std::memcpy(host.data, static_cast<const std::byte*>(mail_.get()) + slot * kMailBytes, host.bytes());
}

Ops& CudaOps::beside() {
  if (beside_ == nullptr) {
    synchronize();  // kernels there load weights before they wait for anything
    beside_ = std::make_unique<CudaOps>(options_, Priority::kSecond);
  }
  return *beside_;
}

void CudaOps::copy(const View& out, const View& in) {
  INVARIANT(out.rows() == in.rows() && out.cols() == in.cols() && out.type == in.type, out.shape.text(),
            " from ", in.shape.text());
  copy_rows(queue(), out, in);
}

// A memory operation rather than a kernel: what reads the bytes early, before its wait, still comes after it.
void CudaOps::fill(const View& out, int byte) {
  INVARIANT(out.dense(), "fill of a strided view");
  CUDA_CHECK(cudaMemsetAsync(out.data, byte, out.bytes(), queue().stream));
}

void CudaOps::synchronize() { CUDA_CHECK(cudaStreamSynchronize(queue().stream)); }

int64_t CudaOps::free_bytes() const {
  size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  const MemoryBudget& budget = MemoryBudget::process();
  const auto device = static_cast<int64_t>(free);
  return budget.limit() > 0 ? std::min(device, budget.limit() - budget.used()) : device;
}

void CudaOps::run_step(int key, const std::function<void()>& step) {
  LaunchQueue& work = queue();
  Step& known = steps_[key];
  if (!options_.graphs || !known.ran) {  // the first run loads modules, which a recording may not
    known.ran = true;
    step();
    queue();
    return;
  }
  if (known.graph == nullptr) record(known, step);
  CUDA_CHECK(cudaGraphLaunch(known.graph, work.stream));
  graph_launches_ += known.launches;
}

void CudaOps::record(Step& step, const std::function<void()>& calls) {
  const int64_t before = queue_.launches;
  CUDA_CHECK(cudaStreamBeginCapture(queue_.stream, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  try {
    calls();
    queue();
  } catch (...) {
    cudaStreamEndCapture(queue_.stream, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  CUDA_CHECK(cudaStreamEndCapture(queue_.stream, &graph));
  const cudaError_t code = cudaGraphInstantiate(&step.graph, graph, 0);
  cudaGraphDestroy(graph);
  CUDA_CHECK(code);
  step.launches = queue_.launches - before;
  queue_.launches = before;
}

std::unique_ptr<Ops> make_cuda_ops(const CudaOptions& options) {
  const std::vector<CudaDevice> devices = list_cuda_devices();
  if (options.device < 0 || options.device >= static_cast<int>(devices.size())) {
    fail("device cuda:", options.device, ": expected a device below ", devices.size(), ", got ",
         devices.empty() ? "no usable CUDA device" : devices.front().name,
         "; see --list-devices or use --device cpu");
  }
  const CudaDevice& device = devices[static_cast<size_t>(options.device)];
  if (device.major < 8) {
    fail("device cuda:", options.device, " (", device.name,
         "): expected compute capability 8.0 or above, got ", device.major, ".", device.minor,
         "; use --device cpu");
  }
  return std::make_unique<CudaOps>(options);
}

CudaCounters cuda_counters(const Ops& ops) {
  const auto* cuda = dynamic_cast<const CudaOps*>(&ops);
  return cuda == nullptr ? CudaCounters{} : cuda->counters();
}

}  // namespace drama3
