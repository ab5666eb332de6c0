// Holding back, merging and launching of neighbouring one-row ops.
#include "kernels/cuda/pending.h"

#include "kernels/cuda/elementwise.cuh"

namespace drama3 {
namespace {

// A row that kernels may read eight elements at a time.
bool eights(const View& view) {
  return view.cols() % 8 == 0 && reinterpret_cast<uintptr_t>(view.data) % (8 * dtype_size(view.type)) == 0;
}

std::byte* end_of(const View& row) { return static_cast<std::byte*>(row.data) + row.bytes(); }

}  // namespace

void Pending::flush(LaunchQueue& queue) {
  const Kind kind = kind_;
  kind_ = Kind::kNone;
  switch (kind) {
    case Kind::kNone:
      break;
    case Kind::kNorms:
      for (int i = 0; i < norm_count_; ++i) {
        const NormWait& norm = norms_[static_cast<size_t>(i)];
        rms_norm_rows(queue, norm.out, norm.in, norm.weight, norm.eps);
      }
      break;
    case Kind::kSwiglu:
      swiglu_rows(queue, swiglu_out_, gate_, up_);
      break;
    case Kind::kGemv:
      gemv(queue, gemv_type_, gemv_);
      break;
    case Kind::kDown:
      experts_down_row(queue, down_);
      break;
  }
}

bool Pending::hold_norm(LaunchQueue& queue, const View& out, const View& in, const View& weight, float eps) {
  if (out.rows() != 1 || out.data == in.data || !eights(out) || !eights(in)) return false;
  const bool second = kind_ == Kind::kNorms && norm_count_ == 1 && end_of(norms_[0].out) == out.data &&
                      in.data != norms_[0].out.data;
  if (!second) {
    flush(queue);
    norm_count_ = 0;
  }
  norms_[static_cast<size_t>(norm_count_++)] = {out, in, weight, eps};
  kind_ = Kind::kNorms;
  return true;
}

bool Pending::hold_swiglu(LaunchQueue& queue, const View& out, const View& gate, const View& up) {
  if (out.rows() != 1 || !eights(out) || !eights(gate) || !eights(up)) return false;
  if (out.data == gate.data || out.data == up.data) return false;  // other blocks still read them
  flush(queue);
  swiglu_out_ = out;
  gate_ = gate;
  up_ = up;
  kind_ = Kind::kSwiglu;
  return true;
}

bool Pending::norms_feed(const View& in) const {
  if (kind_ != Kind::kNorms || norms_[0].out.data != in.data || norms_[0].out.type != in.type) return false;
  int64_t columns = 0;
  for (int i = 0; i < norm_count_; ++i) columns += norms_[static_cast<size_t>(i)].out.cols();
  return columns == in.cols();
}

void Pending::hold_gemv(LaunchQueue& queue, GemvArgs args, const View& in) {
  if (norms_feed(in)) {
    args.input = RowInput::kNorm;
    args.part_count = norm_count_;
    for (int i = 0; i < norm_count_; ++i) {
      const NormWait& norm = norms_[static_cast<size_t>(i)];
      args.parts[i] = {.in = norm.in.data,
                       .weight = static_cast<const float*>(norm.weight.data),
                       .copy = norm.out.data,
                       .dim = static_cast<int>(norm.out.cols()),
                       .eps = norm.eps};
    }
  } else if (kind_ == Kind::kSwiglu && swiglu_out_.data == in.data && swiglu_out_.cols() == in.cols()) {
    args.input = RowInput::kSwiglu;
    args.x = gate_.data;
    args.up = up_.data;
    args.swiglu_copy = swiglu_out_.data;
  } else {
    flush(queue);
  }
  gemv_ = args;
  gemv_type_ = in.type;
  const GemvSegment& only = args.segments[0];
  produced_ = args.segment_count == 1
                  ? View(only.out, static_cast<DType>(only.type), Shape{1, only.n}, Place::kDevice)
                  : View{};
  kind_ = Kind::kGemv;
}

void Pending::hold_down(LaunchQueue& queue, const ExpertArgs& args, const View& out) {
  flush(queue);
  down_ = args;
  produced_ = out;
  kind_ = Kind::kDown;
}

bool Pending::merge_residual(LaunchQueue& queue, const View& sum, const View& delta) {
  if (kind_ != Kind::kGemv && kind_ != Kind::kDown) return false;
  if (sum.rows() != 1 || produced_.data != delta.data || produced_.data == nullptr ||
      produced_.cols() != sum.cols() || produced_.type != sum.type) {
    return false;
  }
  if (kind_ == Kind::kGemv) {
    for (int i = 0; i < gemv_.part_count; ++i) {
      if (gemv_.parts[i].in == sum.data) return false;  // other blocks still norm the sum
    }
    gemv_.segments[0].residual = sum.data;
  } else {
    down_.residual = static_cast<bf16*>(sum.data);
  }
  flush(queue);
  return true;
}

}  // namespace drama3
