// Reference elementwise ops of backbone and tower.
#include <cmath>

#include "kernels/ref/ref_ops.h"

namespace drama3 {

void RefOps::add(const View& out, const View& a, const View& b) {
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t c = 0; c < out.cols(); ++c) out.row<float>(r)[c] = a.row<float>(r)[c] + b.row<float>(r)[c];
  }
}

void RefOps::swiglu(const View& out, const View& gate, const View& up) {
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t c = 0; c < out.cols(); ++c) {
      const float g = gate.row<float>(r)[c];
      out.row<float>(r)[c] = g / (1.0f + std::exp(-g)) * up.row<float>(r)[c];
    }
  }
}

void RefOps::sigmoid_gate(const View& out, const View& gate, const HeadLayout& layout) {
  for (int64_t r = 0; r < out.rows(); ++r) {
    for (int64_t h = 0; h < layout.heads; ++h) {
      float* y = out.row<float>(r) + h * layout.head_dim;
      const float* g = gate.row<float>(r) + h * layout.stride + layout.offset;
      for (int64_t d = 0; d < layout.head_dim; ++d) y[d] *= 1.0f / (1.0f + std::exp(-g[d]));
    }
  }
}

void RefOps::combine_shared(const View& out, const View& routed, const View& shared, const View& gate) {
  for (int64_t r = 0; r < out.rows(); ++r) {
    const float open = 1.0f / (1.0f + std::exp(-*gate.row<float>(r)));
    for (int64_t c = 0; c < out.cols(); ++c) {
      out.row<float>(r)[c] = routed.row<float>(r)[c] + open * shared.row<float>(r)[c];
    }
  }
}

}  // namespace drama3
