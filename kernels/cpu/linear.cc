// Linear layers of the CPU backend: outputs of one or several projections split among threads.
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/product.h"

namespace drama3 {
namespace {

constexpr int64_t kUnit = 16;  // outputs that go to a thread together

int64_t units_of(const Linear& weight) { return (weight.out + kUnit - 1) / kUnit; }

ProductRows product_rows(const View& out, const View& in) {
  return {.x = in.row<float>(0),
          .x_stride = in.row_stride,
          .y = out.row<float>(0),
          .y_stride = out.row_stride,
          .count = in.rows()};
}

}  // namespace

void CpuOps::linear(const View& out, const View& in, const Linear& weight) {
  const Projection one{out, &weight};
  project({&one, 1}, in);
}

void CpuOps::project(std::span<const Projection> outs, const View& in) {
  int64_t units = 0, widest = 0;
  for (const Projection& projection : outs) {
    INVARIANT(in.cols() == projection.weight->in && projection.out.cols() == projection.weight->out &&
                  projection.out.rows() == in.rows(),
              projection.out.shape.text(), " from ", in.shape.text());
    units += units_of(*projection.weight);
    widest = widest < projection.weight->out ? projection.weight->out : widest;
  }
  const int64_t cost = in.rows() * in.cols() * (widest < kUnit ? widest : kUnit);
  threads_.split(units, cost, [&](int64_t begin, int64_t end) {
    int64_t first = 0;  // unit at which a projection begins, in the row of all units
    for (const Projection& projection : outs) {
      const Linear& weight = *projection.weight;
      const int64_t from = (begin > first ? begin - first : 0) * kUnit;
      const int64_t to = end - first < units_of(weight) ? (end - first) * kUnit : weight.out;
      if (from < to) multiply(weight, from, to, product_rows(projection.out, in));
      first += units_of(weight);
    }
  });
}

}  // namespace drama3
