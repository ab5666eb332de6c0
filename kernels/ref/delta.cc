// Reference gated delta rule: causal convolution with silu, gates, and the recurrence row by row.
#include <cmath>

#include "kernels/ref/dot.h"
#include "kernels/ref/ref_ops.h"

namespace drama3 {
namespace {

float inverse_norm(const float* x, int64_t count) {
  const float squares = wide_sum(count, [x](int64_t i) { return x[i] * x[i]; });
  return 1.0f / std::sqrt(squares + 1e-6f);
}

// One head and one row of the recurrence on its state [key_dim, value_dim].
struct HeadStep {
  const float* q;
  const float* k;
  const float* v;
  float decay;
  float beta;
};

void step_head(float* out, float* state, const HeadStep& step, const DeltaDims& dims) {
  const int64_t key_dim = dims.key_dim, value_dim = dims.value_dim;
  const float k_norm = inverse_norm(step.k, key_dim);
  const float q_norm = inverse_norm(step.q, key_dim);
  const float q_scale = 1.0f / std::sqrt(static_cast<float>(key_dim));
  for (int64_t i = 0; i < key_dim * value_dim; ++i) state[i] *= step.decay;
  for (int64_t c = 0; c < value_dim; ++c) {
    const float seen =
        wide_sum(key_dim, [&](int64_t i) { return state[i * value_dim + c] * (step.k[i] * k_norm); });
    const float delta = step.beta * (step.v[c] - seen);
    for (int64_t i = 0; i < key_dim; ++i) state[i * value_dim + c] += step.k[i] * k_norm * delta;
    out[c] = wide_sum(key_dim,
                      [&](int64_t i) { return state[i * value_dim + c] * (step.q[i] * q_norm * q_scale); });
  }
}

}  // namespace

void RefOps::conv_silu(const View& out, const View& in, const View& weight, const View& tail) {
  const int64_t taps = weight.rows(), history = taps - 1, rows = in.rows();
  const auto input = [&](int64_t row) {
    return row < 0 ? tail.row<float>(history + row) : in.row<float>(row);
  };
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < in.cols(); ++c) {
      float sum = 0.0f;
      for (int64_t tap = 0; tap < taps; ++tap) sum += weight.row<float>(tap)[c] * input(r - history + tap)[c];
      out.row<float>(r)[c] = sum / (1.0f + std::exp(-sum));
    }
  }
  for (int64_t t = 0; t < history; ++t) {
    const float* from = input(rows - history + t);  // never a tail row that is already overwritten
    for (int64_t c = 0; c < in.cols(); ++c) tail.row<float>(t)[c] = from[c];
  }
}

void RefOps::delta_gates(const View& decay, const View& beta, const DeltaMix& mix) {
  for (int64_t r = 0; r < decay.rows(); ++r) {
    for (int64_t h = 0; h < mix.dims.value_heads; ++h) {
      const float u = mix.a.row<float>(r)[h] + mix.dt_bias.row<float>(0)[h];
      const float softplus = u > 20.0f ? u : std::log1p(std::exp(u));
      decay.row<float>(r)[h] = std::exp(-std::exp(mix.a_log.row<float>(0)[h]) * softplus);
      beta.row<float>(r)[h] = 1.0f / (1.0f + std::exp(-mix.b.row<float>(r)[h]));
    }
  }
}

void RefOps::delta_rule(const View& out, const View& qkv, const View& decay, const View& beta,
                        const View& memory, const DeltaDims& dims) {
  const int64_t shared = dims.value_heads / dims.key_heads;  // consecutive value heads on one key head
  const int64_t state_size = dims.key_dim * dims.value_dim;
  for (int64_t r = 0; r < qkv.rows(); ++r) {
    const float* row = qkv.row<float>(r);
    for (int64_t h = 0; h < dims.value_heads; ++h) {
      const HeadStep step{.q = row + h / shared * dims.key_dim,
                          .k = row + dims.keys() + h / shared * dims.key_dim,
                          .v = row + 2 * dims.keys() + h * dims.value_dim,
                          .decay = decay.row<float>(r)[h],
                          .beta = beta.row<float>(r)[h]};
      step_head(out.row<float>(r) + h * dims.value_dim, memory.row<float>(0) + h * state_size, step, dims);
    }
  }
}

}  // namespace drama3
