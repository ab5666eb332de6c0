// Holding back, merging and launching of neighbouring one-row ops.
#include "kernels/cuda/pending.h"

#include "kernels/cuda/delta.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/tables.cuh"

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
    case Kind::kEmbed:
      embed_next_rows(queue, embed_.out, embed_.next, embed_.tables, embed_.codebook);
      break;
    case Kind::kNorms:
      launch_norms(queue);
      break;
    case Kind::kGemv:
      gemv(queue, gemv_type_, gemv_);
      break;
    case Kind::kDown:
      experts_down_row(queue, down_);
      break;
  }
}

void Pending::launch_norms(LaunchQueue& queue) {
  if (looked_up_) embed_next_rows(queue, embed_.out, embed_.next, embed_.tables, embed_.codebook);
  for (int i = 0; i < norm_count_; ++i) {
    const NormWait& norm = norms_[static_cast<size_t>(i)];
    if (norm.z.empty()) {
      rms_norm_rows(queue, norm.out, norm.in, norm.weight, norm.eps);
    } else {
      gated_norm(queue, norm.out, norm.in, norm.z, norm.weight, norm.eps);
    }
  }
}

NormPart Pending::NormWait::part() const {
  return {.in = in.data,
          .weight = static_cast<const float*>(weight.data),
          .copy = out.data,
          .dim = static_cast<int>(out.cols()),
          .eps = eps,
          .z = z.data};
}

RowGather Pending::gather() const {
  const EmbedTables& tables = embed_.tables;
  const View codebook =
      tables.codes.rows_from(embed_.codebook * tables.code_vocabulary, tables.code_vocabulary);
  return {.id = static_cast<const int*>(embed_.next.ids.data),
          .code = static_cast<const int*>(embed_.next.codes.data) + embed_.codebook,
          .text = {static_cast<const bf16*>(tables.text.data), tables.text.row_stride},
          .table = {static_cast<const bf16*>(codebook.data), codebook.row_stride},
          .text_rows = tables.text.rows(),
          .entries = tables.code_vocabulary,
          .copy = static_cast<bf16*>(embed_.out.data)};
}

bool Pending::hold_embed(LaunchQueue& queue, const View& out, const RowSource& next,
                         const EmbedTables& tables, int64_t codebook) {
  const auto wide = [](const View& table) {
    return table.type == DType::kBF16 && table.row_stride % 8 == 0 &&
           reinterpret_cast<uintptr_t>(table.data) % 16 == 0;
  };
  if (out.rows() != 1 || out.type != DType::kBF16 || !eights(out)) return false;
  if (!wide(tables.text) || !wide(tables.codes)) return false;
  flush(queue);
  embed_ = {out, next, tables, codebook};
  kind_ = Kind::kEmbed;
  return true;
}

bool Pending::hold_norm(LaunchQueue& queue, const View& out, const View& in, const View& weight, float eps) {
  if (out.rows() != 1 || out.data == in.data || !eights(out) || !eights(in)) return false;
  const bool second = kind_ == Kind::kNorms && norm_count_ == 1 && norms_[0].z.empty() &&
                      end_of(norms_[0].out) == out.data && in.data != norms_[0].out.data;
  if (!second) {
    looked_up_ = kind_ == Kind::kEmbed && embed_.out.data == in.data && embed_.out.cols() == in.cols();
    if (!looked_up_) flush(queue);
    norm_count_ = 0;
  }
  norms_[static_cast<size_t>(norm_count_++)] = {.out = out, .in = in, .weight = weight, .eps = eps, .z = {}};
  kind_ = Kind::kNorms;
  return true;
}

bool Pending::hold_gated_norm(LaunchQueue& queue, const View& out, const View& in, const View& z,
                              const Norm& norm) {
  if (out.rows() != 1 || out.data == in.data || !eights(out) || !eights(in) || !eights(z)) return false;
  flush(queue);
  looked_up_ = false;
  norm_count_ = 1;
  norms_[0] = {.out = out, .in = in, .weight = norm.weight, .eps = norm.eps, .z = z};
  kind_ = Kind::kNorms;
  return true;
}

bool Pending::merge_swiglu(const View& out, const View& gate, const View& up) {
  if (kind_ != Kind::kGemv || gemv_.segment_count != 2 || gemv_.swiglu != nullptr) return false;
  const GemvSegment& first = gemv_.segments[0];
  const GemvSegment& second = gemv_.segments[1];
  const auto is = [&](const GemvSegment& segment, const View& row) {
    return segment.out == row.data && segment.n == row.cols() && row.type == gemv_type_ &&
           segment.type == static_cast<int>(row.type) && row.rows() == 1;
  };
  if (!is(first, gate) || !is(second, up) || first.n != second.n || out.type != gemv_type_) return false;
  if (out.data == gate.data || out.data == up.data) return false;
  gemv_.swiglu = out.data;
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
    args.part_count = norm_count_;
    for (int i = 0; i < norm_count_; ++i) args.parts[i] = norms_[static_cast<size_t>(i)].part();
    if (looked_up_) args.gather = gather();
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
