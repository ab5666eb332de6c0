// Depthwise convolution over rows and the rows carried from call to call.
#include "kernels/cuda/conv.cuh"

#include "kernels/cuda/common/rows.cuh"
#include "kernels/cuda/common/typed.cuh"

namespace drama3 {
namespace {

// Thread = one channel; rows move up in ascending order, so that none is overwritten before it is read.
template <typename T>
__global__ void __launch_bounds__(128)
    shift_tail_kernel(const Rows<T> tail, const Rows<const T> in, int history, int rows, int cols) {
  wait_for_previous();
  allow_next();
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= cols) return;
  for (int i = 0; i < history; ++i) {
    const int source = i + rows - history;  // row of in; before it, of the old tail
    tail.row(i)[c] = source >= 0 ? in.row(source)[c] : tail.row(history + source)[c];
  }
}

template <typename T>
__global__ void __launch_bounds__(256)
    depthwise_kernel(const Rows<T> out, const Rows<const T> in, const Rows<const T> tail, const float* weight,
                     const float* bias, const DepthwiseSizes sizes, int64_t count, int cols) {
  wait_for_previous();
  allow_next();
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= count) return;
  const int row = static_cast<int>(index / cols), c = static_cast<int>(index % cols);
  float sum = 0.0f;
  for (int tap = 0; tap < sizes.kernel; ++tap) {
    const int source = row * sizes.stride + tap * sizes.dilation - sizes.history;
    float x = 0.0f;
    if (source >= 0) {
      x = widen(in.row(source)[c]);
    } else if (tail.data != nullptr) {
      x = widen(tail.row(sizes.history + source)[c]);
    }
    sum = fmaf(weight[tap * cols + c], x, sum);
  }
  if (bias != nullptr) sum = rounded<T>(sum) + rounded<T>(bias[c]);
  out.row(row)[c] = narrow<T>(sum);
}

}  // namespace

void shift_tail(LaunchQueue& queue, const View& tail, const View& in) {
  if (tail.empty()) return;
  with_type(in.type, [&](auto t) {
    using T = decltype(t);
    launch(queue, shift_tail_kernel<T>,
           {.grid = dim3(static_cast<unsigned>((in.cols() + 127) / 128)), .block = 128}, rows_of<T>(tail),
           rows_of<const T>(in), static_cast<int>(tail.rows()), static_cast<int>(in.rows()),
           static_cast<int>(in.cols()));
  });
}

void depthwise(LaunchQueue& queue, const View& out, const View& in, const View& weight, const View& bias,
               const View& tail, const DepthwiseSizes& sizes) {
  const int64_t count = out.elements();
  with_type(in.type, [&](auto t) {
    using T = decltype(t);
    launch(queue, depthwise_kernel<T>, {.grid = dim3(static_cast<unsigned>((count + 255) / 256))},
           rows_of<T>(out), rows_of<const T>(in), tail.empty() ? Rows<const T>{} : rows_of<const T>(tail),
           static_cast<const float*>(weight.data), static_cast<const float*>(bias.data), sizes, count,
           static_cast<int>(out.cols()));
  });
}

}  // namespace drama3
