// Elementwise ops over rows of F32, BF16 or F16: widened, computed in F32, rounded once.
#include "kernels/cuda/elementwise.cuh"

#include "kernels/cuda/common/rows.cuh"
#include "kernels/cuda/common/typed.cuh"

namespace drama3 {
namespace {

// out(r, c) = op(r, c) for all rows and columns.
template <typename T, typename Op>
__global__ void __launch_bounds__(256) each_kernel(const Rows<T> out, int64_t count, int cols, const Op op) {
  wait_for_previous();
  allow_next();
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= count) return;
  const int64_t row = index / cols;
  const int col = static_cast<int>(index - row * cols);
  out.row(row)[col] = narrow<T>(op(row, col));
}

template <typename T, typename Op>
void for_each(LaunchQueue& queue, const View& out, const Op& op) {
  const int64_t count = out.elements();
  launch(queue, each_kernel<T, Op>, {.grid = dim3(static_cast<unsigned>((count + 255) / 256))},
         rows_of<T>(out), count, static_cast<int>(out.cols()), op);
}

template <typename T>
struct Add {
  Rows<const T> a, b;
  __device__ float operator()(int64_t r, int c) const { return widen(a.row(r)[c]) + widen(b.row(r)[c]); }
};

template <typename T>
struct ScaledAdd {
  Rows<const T> x, y;
  const float* gain;
  __device__ float operator()(int64_t r, int c) const {
    return widen(x.row(r)[c]) + gain[c] * widen(y.row(r)[c]);
  }
};

template <typename T>
struct Swiglu {
  Rows<const T> gate, up;
  __device__ float operator()(int64_t r, int c) const {
    return silu(widen(gate.row(r)[c])) * widen(up.row(r)[c]);
  }
};

template <typename T>
struct Gelu {
  Rows<const T> in;
  __device__ float operator()(int64_t r, int c) const {
    const float x = widen(in.row(r)[c]);
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
  }
};

template <typename T>
struct Tanh {
  Rows<const T> in;
  __device__ float operator()(int64_t r, int c) const { return tanhf(widen(in.row(r)[c])); }
};

template <typename T>
struct SnakeOf {
  Rows<const T> in;
  const float* alpha;
  __device__ float operator()(int64_t r, int c) const {
    const float x = widen(in.row(r)[c]);
    const float wave = sinf(alpha[c] * x);
    return x + wave * wave / (alpha[c] + 1e-9f);
  }
};

template <typename T>
struct CombineShared {
  Rows<const T> routed, shared, gate;
  __device__ float operator()(int64_t r, int c) const {
    return widen(routed.row(r)[c]) + rounded<T>(sigmoid(widen(gate.row(r)[0])) * widen(shared.row(r)[c]));
  }
};

template <typename T>
struct Gated {
  Rows<const T> in, gate;
  HeadGate heads;
  __device__ float operator()(int64_t r, int c) const {
    const int head = c / heads.width;
    const int at = head * heads.stride + heads.offset + c - head * heads.width;
    return widen(in.row(r)[c]) * sigmoid(widen(gate.row(r)[at]));
  }
};

// Moves elements of any width.
template <typename Word>
__global__ void __launch_bounds__(256)
    copy_kernel(const Rows<Word> out, const Rows<const Word> in, int64_t count, int cols) {
  wait_for_previous();
  allow_next();
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= count) return;
  out.row(index / cols)[index % cols] = in.row(index / cols)[index % cols];
}

template <typename Word>
void copy_words(LaunchQueue& queue, const View& out, const View& in) {
  const int64_t count = out.elements();
  launch(queue, copy_kernel<Word>, {.grid = dim3(static_cast<unsigned>((count + 255) / 256))},
         Rows<Word>{static_cast<Word*>(out.data), out.row_stride},
         Rows<const Word>{static_cast<const Word*>(in.data), in.row_stride}, count,
         static_cast<int>(out.cols()));
}

}  // namespace

void add_rows(LaunchQueue& queue, const View& out, const View& a, const View& b) {
  with_type(out.type, [&](auto t) {
    using T = decltype(t);
    for_each<T>(queue, out, Add<T>{rows_of<const T>(a), rows_of<const T>(b)});
  });
}

void scaled_add_rows(LaunchQueue& queue, const View& out, const View& x, const View& y, const View& gain) {
  with_type(out.type, [&](auto t) {
    using T = decltype(t);
    for_each<T>(queue, out,
                ScaledAdd<T>{rows_of<const T>(x), rows_of<const T>(y), static_cast<const float*>(gain.data)});
  });
}

void swiglu_rows(LaunchQueue& queue, const View& out, const View& gate, const View& up) {
  with_type(out.type, [&](auto t) {
    using T = decltype(t);
    for_each<T>(queue, out, Swiglu<T>{rows_of<const T>(gate), rows_of<const T>(up)});
  });
}

void gelu_rows(LaunchQueue& queue, const View& out, const View& in) {
  with_type(out.type, [&](auto t) {
    using T = decltype(t);
    for_each<T>(queue, out, Gelu<T>{rows_of<const T>(in)});
  });
}

void tanh_rows(LaunchQueue& queue, const View& out, const View& in) {
  with_type(out.type, [&](auto t) {
    using T = decltype(t);
    for_each<T>(queue, out, Tanh<T>{rows_of<const T>(in)});
  });
}

void snake_rows(LaunchQueue& queue, const View& out, const View& in, const View& alpha) {
  with_type(out.type, [&](auto t) {
    using T = decltype(t);
    for_each<T>(queue, out, SnakeOf<T>{rows_of<const T>(in), static_cast<const float*>(alpha.data)});
  });
}

void combine_shared_rows(LaunchQueue& queue, const View& out, const View& routed, const View& shared,
                         const View& gate) {
  with_type(out.type, [&](auto t) {
    using T = decltype(t);
    for_each<T>(queue, out,
                CombineShared<T>{rows_of<const T>(routed), rows_of<const T>(shared), rows_of<const T>(gate)});
  });
}

void gate_rows(LaunchQueue& queue, const View& out, const View& gate, const HeadGate& heads) {
  with_type(out.type, [&](auto t) {
    using T = decltype(t);
    for_each<T>(queue, out, Gated<T>{rows_of<const T>(out), rows_of<const T>(gate), heads});
  });
}

void copy_rows(LaunchQueue& queue, const View& out, const View& in) {
  switch (dtype_size(out.type)) {
    case 8:
      return copy_words<uint64_t>(queue, out, in);
    case 4:
      return copy_words<uint32_t>(queue, out, in);
    case 2:
      return copy_words<uint16_t>(queue, out, in);
    default:
      return copy_words<uint8_t>(queue, out, in);
  }
}

}  // namespace drama3
