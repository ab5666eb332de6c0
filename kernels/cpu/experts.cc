// Routed experts of the CPU backend: rows grouped by expert for the products, summed in slot order at the
// end.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/experts.cc"
#include "kernels/cpu/targets.h"

#include <hwy/foreach_target.h>

#include <algorithm>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drama3 {
namespace HWY_NAMESPACE {

// Code values and scales of one row, per group of 128.
void round_row(float* values, float* scales, const float* x, int64_t count) {
  for (int64_t begin = 0; begin < count; begin += 128) {
    scales[begin / 128] = quantize_group(values + begin, x + begin, std::min<int64_t>(128, count - begin));
  }
}

// gate = silu(gate) * up for up to 128 values, rounded to FP8 code values when `scale` is given.
void activate_group(float* gate, const float* up, int64_t count, float* scale) {
  for (int64_t c = 0; c < count; c += kLanes) {
    const int64_t rest = count - c;
    store_first(silu(load_first(gate + c, rest)) * load_first(up + c, rest), gate + c, rest);
  }
  if (scale != nullptr) *scale = quantize_group(gate, gate, count);
}

// out = sum over slots of weights[slot] * rows[slot], rows `stride` apart.
void sum_slots(float* out, const float* rows, int64_t stride, int64_t count, const float* weights,
               int64_t slots) {
  for (int64_t c = 0; c < count; c += kLanes) {
    const int64_t rest = count - c;
    Floats sum = zero();
    for (int64_t slot = 0; slot < slots; ++slot) {
      sum = fma(splat(weights[slot]), load_first(rows + slot * stride + c, rest), sum);
    }
    store_first(sum, out + c, rest);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace drama3
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drama3 {

HWY_EXPORT(round_row);
HWY_EXPORT(activate_group);
HWY_EXPORT(sum_slots);

namespace {

constexpr int64_t kGroup = 128;  // inputs under one activation scale, outputs that go to a thread together

int64_t groups_of(int64_t count) { return (count + kGroup - 1) / kGroup; }

// What a call keeps in its workspace; a pair is row * top_k + slot.
struct Workspace {
  float* rounded;         // [rows, hidden] code values of the inputs
  float* rounded_scales;  // [rows, groups of hidden]
  float* inner;           // [pairs, ffn] gate, then the product that down sees
  float* inner_scales;    // [pairs, groups of ffn]
  float* up;              // [pairs, ffn]
  float* down;            // [pairs, hidden]
  int32_t* pairs;         // [pairs] grouped by expert
  int32_t* rows;          // [pairs] the row of each of those
  int32_t* starts;        // [experts + 1] where an expert's group begins
  int32_t* active;        // [experts] experts that have a row
  int64_t bytes = 0;
};

// Cuts the workspace into its parts, each at a multiple of 64 bytes; with a null base it only counts bytes.
Workspace cut(std::byte* base, const Experts& experts, int64_t top_k, int64_t rows) {
  Workspace out{};
  const auto part = [&](auto*& pointer, int64_t count) {
    using Element = std::remove_reference_t<decltype(*pointer)>;
    if (base != nullptr) pointer = reinterpret_cast<Element*>(base + out.bytes);
    out.bytes += (count * static_cast<int64_t>(sizeof(Element)) + 63) / 64 * 64;
  };
  const int64_t pairs = rows * top_k, number = static_cast<int64_t>(experts.each.size());
  part(out.rounded, rows * experts.hidden);
  part(out.rounded_scales, rows * groups_of(experts.hidden));
  part(out.inner, pairs * experts.ffn);
  part(out.inner_scales, pairs * groups_of(experts.ffn));
  part(out.up, pairs * experts.ffn);
  part(out.down, pairs * experts.hidden);
  part(out.pairs, pairs);
  part(out.rows, pairs);
  part(out.starts, number + 1);
  part(out.active, number);
  return out;
}

// Groups pairs by expert, in ascending order of pair inside a group; returns how many experts are active.
int64_t group_pairs(const Workspace& work, const View& indices, int64_t experts) {
  const int64_t top_k = indices.cols(), pairs = indices.rows() * top_k;
  const auto expert_of = [&](int64_t pair) { return indices.row<int32_t>(pair / top_k)[pair % top_k]; };
  std::fill_n(work.starts, experts + 1, 0);
  for (int64_t pair = 0; pair < pairs; ++pair) ++work.starts[expert_of(pair) + 1];
  int64_t active = 0;
  for (int64_t e = 0; e < experts; ++e) {
    if (work.starts[e + 1] > 0) work.active[active++] = static_cast<int32_t>(e);
    work.starts[e + 1] += work.starts[e];
  }
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const int32_t at = work.starts[expert_of(pair)]++;
    work.pairs[at] = static_cast<int32_t>(pair);
    work.rows[at] = static_cast<int32_t>(pair / top_k);
  }
  for (int64_t e = experts; e > 0; --e) work.starts[e] = work.starts[e - 1];
  work.starts[0] = 0;
  return active;
}

bool is_fp8(const Linear& linear) { return linear.weight.type == DType::kF8E4M3; }

}  // namespace

int64_t CpuOps::expert_workspace(const MoeMix& mix, int64_t rows) const {
  return cut(nullptr, mix.experts, mix.top_k, rows).bytes;
}

void CpuOps::expert_ffn(const View& out, const View& in, const Routing& routing, const MoeMix& mix,
                        const MoeReplay& replay, const View& workspace) {
  const Experts& experts = mix.experts;
  const int64_t hidden = experts.hidden, ffn = experts.ffn, rows = in.rows(), top_k = mix.top_k;
  const Workspace work = cut(static_cast<std::byte*>(workspace.data), experts, top_k, rows);
  INVARIANT(workspace.bytes() >= static_cast<size_t>(work.bytes), workspace.bytes(), " bytes of workspace");
  const bool round_in = replay.quantize_activations && is_fp8(experts.each[0].gate);
  const bool round_inner = replay.quantize_activations && is_fp8(experts.each[0].down);
  const int64_t active = group_pairs(work, routing.indices, static_cast<int64_t>(experts.each.size()));
  if (active == 0) return;
  const int64_t rows_each = (rows * top_k + active - 1) / active;

  if (round_in) {
    threads_.split(rows, 16 * hidden, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        HWY_DYNAMIC_DISPATCH(round_row)
        (work.rounded + r * hidden, work.rounded_scales + r * groups_of(hidden), in.row<float>(r), hidden);
      }
    });
  }

  const int64_t groups = groups_of(ffn);
  threads_.split(active * groups, 2 * kGroup * hidden * rows_each, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int32_t e = work.active[item / groups];
      const Expert& expert = experts.each[static_cast<size_t>(e)];
      const int64_t group = item % groups, first = group * kGroup, last = std::min(first + kGroup, ffn);
      ProductRows product{.x = round_in ? work.rounded : in.row<float>(0),
                          .x_stride = round_in ? hidden : in.row_stride,
                          .x_index = work.rows + work.starts[e],
                          .x_scale = round_in ? work.rounded_scales : nullptr,
                          .scale_stride = groups_of(hidden),
                          .y = work.inner,
                          .y_stride = ffn,
                          .y_index = work.pairs + work.starts[e],
                          .count = work.starts[e + 1] - work.starts[e]};
      multiply(expert.gate, first, last, product);
      product.y = work.up;
      multiply(expert.up, first, last, product);
      for (int64_t i = work.starts[e]; i < work.starts[e + 1]; ++i) {
        const int64_t pair = work.pairs[i];
        HWY_DYNAMIC_DISPATCH(activate_group)
        (work.inner + pair * ffn + first, work.up + pair * ffn + first, last - first,
         round_inner ? work.inner_scales + pair * groups + group : nullptr);
      }
    }
  });

  const int64_t parts = groups_of(hidden);
  threads_.split(active * parts, kGroup * ffn * rows_each, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int32_t e = work.active[item / parts];
      const int64_t first = item % parts * kGroup;
      const ProductRows product{.x = work.inner,
                                .x_stride = ffn,
                                .x_index = work.pairs + work.starts[e],
                                .x_scale = round_inner ? work.inner_scales : nullptr,
                                .scale_stride = groups,
                                .y = work.down,
                                .y_stride = hidden,
                                .y_index = work.pairs + work.starts[e],
                                .count = work.starts[e + 1] - work.starts[e]};
      multiply(experts.each[static_cast<size_t>(e)].down, first, std::min(first + kGroup, hidden), product);
    }
  });

  threads_.split(rows, 2 * top_k * hidden, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      HWY_DYNAMIC_DISPATCH(sum_slots)
      (out.row<float>(r), work.down + r * top_k * hidden, hidden, hidden, routing.weights.row<float>(r),
       top_k);
    }
  });
}

}  // namespace drama3
#endif
