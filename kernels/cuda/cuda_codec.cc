// The codec's ops, and those that gather, move and draw, as launches.
#include "kernels/cuda/conv.cuh"
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/pick.cuh"
#include "kernels/cuda/tables.cuh"
#include "lib/base/check.h"

namespace drama3 {
namespace {

// The matrix product of a convolution over `in` into rows of `out_columns` columns at `out`.
GemmArgs conv_args(const PackedMatrix& matrix, const View& in, const View& tail) {
  return {.weight = matrix.data,
          .bias = matrix.bias,
          .n = matrix.n,
          .steps = matrix.steps,
          .bias_period = matrix.n,
          .round_first = true,
          .x = in.data,
          .x_stride = in.row_stride,
          .tail = tail.data,
          .tail_stride = tail.row_stride,
          .in = matrix.k,
          .in_padded = (matrix.k + kStepK - 1) / kStepK * kStepK};
}

}  // namespace

void CudaOps::conv(const View& out, const View& in, const Conv& conv, const View& tail) {
  LaunchQueue& work = queue();
  INVARIANT(tail.empty() || tail.rows() == conv.history(), tail.shape.text(), " for ", conv.history());
  if (conv.depthwise) {
    depthwise(work, out, in, conv.weight, conv.bias, tail,
              {.kernel = static_cast<int>(conv.kernel),
               .dilation = static_cast<int>(conv.dilation),
               .stride = static_cast<int>(conv.stride),
               .history = static_cast<int>(conv.history())});
  } else {
    GemmArgs args = conv_args(*static_cast<const PackedMatrix*>(conv.packed.get()), in, tail);
    args.out = out.data;
    args.out_stride = out.row_stride;
    args.type = static_cast<int>(out.type);
    args.rows = static_cast<int>(out.rows());
    args.stride = static_cast<int>(conv.stride);
    args.dilation = static_cast<int>(conv.dilation);
    args.history = static_cast<int>(conv.history());
    gemm(work, in.type, args);
  }
  shift_tail(work, tail, in);
}

void CudaOps::conv_transpose(const View& out, const View& in, const ConvTranspose& conv, const View& tail) {
  LaunchQueue& work = queue();
  INVARIANT(out.dense() && out.rows() == in.rows() * conv.stride, out.shape.text(), " from ",
            in.shape.text());
  GemmArgs args = conv_args(*static_cast<const PackedMatrix*>(conv.packed.get()), in, tail);
  args.out = out.data;
  args.out_stride = conv.stride * conv.out;
  args.type = static_cast<int>(out.type);
  args.rows = static_cast<int>(in.rows());
  args.history = static_cast<int>(conv.history());
  args.bias_period = static_cast<int>(conv.out);
  gemm(work, in.type, args);
  shift_tail(work, tail, in);
}

void CudaOps::snake(const View& out, const View& in, const Snake& snake) {
  snake_rows(queue(), out, in, snake.alpha);
}

void CudaOps::lookup(const View& out, const View& codes, const View& table) {
  lookup_rows(queue(), out, codes, table);
}

void CudaOps::nearest(const View& codes, const View& in, const View& table) {
  nearest_rows(queue(), codes, in, table);
}

void CudaOps::layer_norm(const View& out, const View& in, const View& weight, const View& bias, float eps) {
  layer_norm_rows(queue(), out, in, weight, bias, eps);
}

void CudaOps::scaled_add(const View& out, const View& x, const View& y, const View& gain) {
  scaled_add_rows(queue(), out, x, y, gain);
}

void CudaOps::gelu(const View& out, const View& in) { gelu_rows(queue(), out, in); }
void CudaOps::tanh(const View& out, const View& in) { tanh_rows(queue(), out, in); }

void CudaOps::embed(const View& out, const RowSource& rows, const EmbedTables& tables) {
  embed_rows(queue(), out, rows, tables);
}

void CudaOps::embed_next(const View& out, const RowSource& next, const EmbedTables& tables,
                         int64_t codebook) {
  if (options_.fuse && pending_.hold_embed(queue_, out, next, tables, codebook)) return;
  embed_next_rows(queue(), out, next, tables, codebook);
}

void CudaOps::advance(const View& position, int64_t rows) { advance_by(queue(), position, rows); }

void CudaOps::pick(const View& code, const View& logits, const PickState& state, int64_t codebook) {
  pick_code(queue(), code, logits, state, codebook);
}

void CudaOps::record_codes(const View& history, const View& codes, const View& frame) {
  record_row(queue(), history, codes, frame);
}

}  // namespace drama3
