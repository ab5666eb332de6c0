// Gated delta rule of the CPU backend: causal convolution with silu, gates, and the recurrence by value
// heads.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/delta.cc"
#include "kernels/cpu/targets.h"

#include <hwy/foreach_target.h>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/delta_rule.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drama3 {
namespace HWY_NAMESPACE {

// Channels [begin, end) of every row, then of the tail.
void conv_silu_channels(const View& out, const View& in, const View& weight, const View& tail, int64_t begin,
                        int64_t end) {
  const int64_t taps = weight.rows(), history = taps - 1, rows = in.rows();
  const auto input = [&](int64_t row) {
    return row < 0 ? tail.row<float>(history + row) : in.row<float>(row);
  };
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = begin; c < end; c += kLanes) {
      Floats sum = zero();
      for (int64_t tap = 0; tap < taps; ++tap) {
        sum = fma(load_first(weight.row<float>(tap) + c, end - c),
                  load_first(input(r - history + tap) + c, end - c), sum);
      }
      store_first(silu(sum), out.row<float>(r) + c, end - c);
    }
  }
  for (int64_t t = 0; t < history; ++t) {  // ascending: what a tail row is read from is not yet overwritten
    std::memmove(tail.row<float>(t) + begin, input(rows - history + t) + begin,
                 static_cast<size_t>(end - begin) * sizeof(float));
  }
}

void delta_gates_row(float* decay, float* beta, const DeltaMix& mix, int64_t row) {
  const float* a = mix.a.row<float>(row);
  const float* b = mix.b.row<float>(row);
  const float* a_log = mix.a_log.row<float>(0);
  const float* dt_bias = mix.dt_bias.row<float>(0);
  const int64_t heads = mix.dims.value_heads;
  for (int64_t h = 0; h < heads; h += kLanes) {
    const int64_t rest = heads - h;
    const Floats step = softplus(load_first(a + h, rest) + load_first(dt_bias + h, rest));
    store_first(exp(negate(exp(load_first(a_log + h, rest))) * step), decay + h, rest);
    store_first(sigmoid(load_first(b + h, rest)), beta + h, rest);
  }
}

// One value head of one row.
struct HeadStep {
  const float* q;
  const float* k;
  const float* v;
  float q_gain;  // 1 / |q| and key_dim^-0.5
  float k_gain;  // 1 / |k|
  float decay;
  float beta;
};

// 1 / sqrt(sum of squares + 1e-6).
HWY_INLINE float inverse_norm(const float* x, int64_t count) {
  Floats sum = zero();
  for (int64_t c = 0; c < count; c += kLanes) {
    const Floats value = load_first(x + c, count - c);
    sum = fma(value, value, sum);
  }
  return 1.0f / std::sqrt(fold_sum(sum) + 1e-6f);
}

// Columns [column, column + 16 * kBlocks) of the state, whose rows stay in cache between the two passes; the
// last block may be cut to `rest` columns. Sums over key_dim ascend.
template <int kBlocks>
HWY_INLINE void step_columns(float* out, float* state, const HeadStep& step, const DeltaDims& dims,
                             int64_t column, int64_t rest) {
  const Floats decay = splat(step.decay);
  Floats seen[kBlocks];
  for (int i = 0; i < kBlocks; ++i) seen[i] = zero();
  for (int64_t key = 0; key < dims.key_dim; ++key) {
    const float* row = state + key * dims.value_dim + column;
    const Floats k = splat(step.k[key] * step.k_gain);
    for (int i = 0; i < kBlocks; ++i) {
      seen[i] = fma(load_first(row + i * kLanes, rest - i * kLanes) * decay, k, seen[i]);
    }
  }
  Floats delta[kBlocks], read[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    const int64_t count = rest - i * kLanes;
    delta[i] = splat(step.beta) * (load_first(step.v + column + i * kLanes, count) - seen[i]);
    read[i] = zero();
  }
  for (int64_t key = 0; key < dims.key_dim; ++key) {
    float* row = state + key * dims.value_dim + column;
    const Floats k = splat(step.k[key] * step.k_gain);
    const Floats q = splat(step.q[key] * step.q_gain);
    for (int i = 0; i < kBlocks; ++i) {
      const int64_t count = rest - i * kLanes;
      const Floats value = fma(k, delta[i], load_first(row + i * kLanes, count) * decay);
      store_first(value, row + i * kLanes, count);
      read[i] = fma(value, q, read[i]);
    }
  }
  for (int i = 0; i < kBlocks; ++i) {
    store_first(read[i], out + column + i * kLanes, rest - i * kLanes);
  }
}

// All rows of one value head, in order.
void delta_rule_head(const DeltaRule& rule, int64_t head) {
  constexpr int kBlocks = 4;
  const DeltaDims& dims = rule.dims;
  const int64_t key_head = head / (dims.value_heads / dims.key_heads);
  const float root = std::sqrt(static_cast<float>(dims.key_dim));
  float* state = rule.memory.row<float>(0) + head * dims.key_dim * dims.value_dim;
  for (int64_t r = 0; r < rule.qkv.rows(); ++r) {
    const float* row = rule.qkv.row<float>(r);
    const float* q = row + key_head * dims.key_dim;
    const float* k = row + dims.keys() + key_head * dims.key_dim;
    const HeadStep step{.q = q,
                        .k = k,
                        .v = row + 2 * dims.keys() + head * dims.value_dim,
                        .q_gain = inverse_norm(q, dims.key_dim) / root,
                        .k_gain = inverse_norm(k, dims.key_dim),
                        .decay = rule.decay.row<float>(r)[head],
                        .beta = rule.beta.row<float>(r)[head]};
    float* out = rule.out.row<float>(r) + head * dims.value_dim;
    int64_t column = 0;
    for (; column + kBlocks * kLanes <= dims.value_dim; column += kBlocks * kLanes) {
      step_columns<kBlocks>(out, state, step, dims, column, kBlocks * kLanes);
    }
    for (; column < dims.value_dim; column += kLanes) {
      step_columns<1>(out, state, step, dims, column, dims.value_dim - column);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace drama3
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drama3 {

HWY_EXPORT(conv_silu_channels);
HWY_EXPORT(delta_gates_row);
HWY_EXPORT(delta_rule_head);

void CpuOps::conv_silu(const View& out, const View& in, const View& weight, const View& tail) {
  constexpr int64_t kChannels = 128;  // of one item
  const int64_t items = (in.cols() + kChannels - 1) / kChannels;
  threads_.split(items, in.rows() * kChannels * (weight.rows() + 12), [&](int64_t begin, int64_t end) {
    const int64_t last = end * kChannels < in.cols() ? end * kChannels : in.cols();
    HWY_DYNAMIC_DISPATCH(conv_silu_channels)(out, in, weight, tail, begin * kChannels, last);
  });
}

void CpuOps::delta_gates(const View& decay, const View& beta, const DeltaMix& mix) {
  for (int64_t r = 0; r < decay.rows(); ++r) {
    HWY_DYNAMIC_DISPATCH(delta_gates_row)(decay.row<float>(r), beta.row<float>(r), mix, r);
  }
}

void CpuOps::delta_rule(const View& out, const View& qkv, const View& decay, const View& beta,
                        const View& memory, const DeltaDims& dims) {
  const DeltaRule rule{out, qkv, decay, beta, memory, dims};
  threads_.split(dims.value_heads, 2 * qkv.rows() * dims.key_dim * dims.value_dim,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t head = begin; head < end; ++head) {
                     HWY_DYNAMIC_DISPATCH(delta_rule_head)(rule, head);
                   }
                 });
}

}  // namespace drama3
#endif
