// RMS norm and layer norm of rows: one block a row.
#include "kernels/cuda/common/rows.cuh"
#include "kernels/cuda/common/typed.cuh"
#include "kernels/cuda/elementwise.cuh"

namespace drama3 {
namespace {

template <typename T>
__global__ void __launch_bounds__(kReduceThreads)
    rms_norm_kernel(const Rows<T> out, const Rows<const T> in, const float* weight, int dim, float eps) {
  wait_for_previous();
  allow_next();
  const int row = static_cast<int>(blockIdx.x);
  rms_norm_row(out.row(row), in.row(row), weight, dim, eps);
}

// The same for rows that are not made of aligned eights.
template <typename T>
__global__ void __launch_bounds__(kReduceThreads)
    narrow_rms_norm_kernel(const Rows<T> out, const Rows<const T> in, const float* weight, int dim,
                           float eps) {
  wait_for_previous();
  allow_next();
  const int row = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  float sum = 0.0f;
  for (int i = thread; i < dim; i += kReduceThreads) {
    const float x = widen(in.row(row)[i]);
    sum = fmaf(x, x, sum);
  }
  const float scale = rsqrtf(group_sum(sum) / static_cast<float>(dim) + eps);
  for (int i = thread; i < dim; i += kReduceThreads) {
    out.row(row)[i] = narrow<T>(norm_value<T>(widen(in.row(row)[i]), scale, weight[i]));
  }
}

template <typename T>
__global__ void __launch_bounds__(kReduceThreads)
    layer_norm_kernel(const Rows<T> out, const Rows<const T> in, const float* weight, const float* bias,
                      int dim, float eps) {
  wait_for_previous();
  allow_next();
  const int row = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  float sum = 0.0f;
  for (int i = thread; i < dim; i += kReduceThreads) sum += widen(in.row(row)[i]);
  const float mean = group_sum(sum) / static_cast<float>(dim);
  float squares = 0.0f;
  for (int i = thread; i < dim; i += kReduceThreads) {
    const float x = widen(in.row(row)[i]) - mean;
    squares = fmaf(x, x, squares);
  }
  __syncthreads();  // the first sum is read
  const float scale = rsqrtf(group_sum(squares) / static_cast<float>(dim) + eps);
  for (int i = thread; i < dim; i += kReduceThreads) {
    out.row(row)[i] = narrow<T>((widen(in.row(row)[i]) - mean) * scale * weight[i] + bias[i]);
  }
}

bool eights(const View& view) {
  const auto at = reinterpret_cast<uintptr_t>(view.data);
  return view.cols() % 8 == 0 && view.row_stride % 8 == 0 && at % (8 * dtype_size(view.type)) == 0;
}

}  // namespace

void rms_norm_rows(LaunchQueue& queue, const View& out, const View& in, const View& weight, float eps) {
  const Geometry geometry{.grid = dim3(static_cast<unsigned>(out.rows())), .block = kReduceThreads};
  with_type(out.type, [&](auto t) {
    using T = decltype(t);
    launch(queue, eights(out) && eights(in) ? rms_norm_kernel<T> : narrow_rms_norm_kernel<T>, geometry,
           rows_of<T>(out), rows_of<const T>(in), static_cast<const float*>(weight.data),
           static_cast<int>(out.cols()), eps);
  });
}

void layer_norm_rows(LaunchQueue& queue, const View& out, const View& in, const View& weight,
                     const View& bias, float eps) {
  with_type(out.type, [&](auto t) {
    using T = decltype(t);
    launch(queue, layer_norm_kernel<T>,
           {.grid = dim3(static_cast<unsigned>(out.rows())), .block = kReduceThreads}, rows_of<T>(out),
           rows_of<const T>(in), static_cast<const float*>(weight.data), static_cast<const float*>(bias.data),
           static_cast<int>(out.cols()), eps);
  });
}

}  // namespace drama3
