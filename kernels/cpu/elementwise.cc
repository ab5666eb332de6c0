// Elementwise ops of backbone and tower on the CPU backend.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cc"
#include "kernels/cpu/targets.h"

#include <hwy/foreach_target.h>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drama3 {
namespace HWY_NAMESPACE {

void add_row(float* out, const float* a, const float* b, int64_t count) {
  for (int64_t c = 0; c < count; c += kLanes) {
    const int64_t rest = count - c;
    store_first(load_first(a + c, rest) + load_first(b + c, rest), out + c, rest);
  }
}

void swiglu_row(float* out, const float* gate, const float* up, int64_t count) {
  for (int64_t c = 0; c < count; c += kLanes) {
    const int64_t rest = count - c;
    store_first(silu(load_first(gate + c, rest)) * load_first(up + c, rest), out + c, rest);
  }
}

void sigmoid_gate_head(float* out, const float* gate, int64_t count) {
  for (int64_t c = 0; c < count; c += kLanes) {
    const int64_t rest = count - c;
    store_first(load_first(out + c, rest) * sigmoid(load_first(gate + c, rest)), out + c, rest);
  }
}

void combine_shared_row(float* out, const float* routed, const float* shared, float gate, int64_t count) {
  const Floats open = sigmoid(splat(gate));
  for (int64_t c = 0; c < count; c += kLanes) {
    const int64_t rest = count - c;
    store_first(fma(open, load_first(shared + c, rest), load_first(routed + c, rest)), out + c, rest);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace drama3
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drama3 {

HWY_EXPORT(add_row);
HWY_EXPORT(swiglu_row);
HWY_EXPORT(sigmoid_gate_head);
HWY_EXPORT(combine_shared_row);

void CpuOps::add(const View& out, const View& a, const View& b) {
  threads_.split(out.rows(), out.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      HWY_DYNAMIC_DISPATCH(add_row)(out.row<float>(r), a.row<float>(r), b.row<float>(r), out.cols());
    }
  });
}

void CpuOps::swiglu(const View& out, const View& gate, const View& up) {
  threads_.split(out.rows(), 16 * out.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      HWY_DYNAMIC_DISPATCH(swiglu_row)(out.row<float>(r), gate.row<float>(r), up.row<float>(r), out.cols());
    }
  });
}

void CpuOps::sigmoid_gate(const View& out, const View& gate, const HeadLayout& layout) {
  threads_.split(out.rows(), 16 * out.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t h = 0; h < layout.heads; ++h) {
        HWY_DYNAMIC_DISPATCH(sigmoid_gate_head)
        (out.row<float>(r) + h * layout.head_dim, gate.row<float>(r) + h * layout.stride + layout.offset,
         layout.head_dim);
      }
    }
  });
}

void CpuOps::combine_shared(const View& out, const View& routed, const View& shared, const View& gate) {
  threads_.split(out.rows(), 2 * out.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      HWY_DYNAMIC_DISPATCH(combine_shared_row)
      (out.row<float>(r), routed.row<float>(r), shared.row<float>(r), *gate.row<float>(r), out.cols());
    }
  });
}

}  // namespace drama3
#endif
