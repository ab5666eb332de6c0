// Weight preparation: stored tensors pass through pinned slots and are packed on the device.
#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/pack.cuh"
#include "lib/base/check.h"
#include "lib/base/scalars.h"
#include "lib/tensor/stored_value.h"

namespace drama3 {
namespace {

constexpr int64_t kPieceBytes = 256 << 20;  // of weight memory at a time
constexpr int64_t kAlignment = 256;

int round_up(int64_t value, int64_t step) { return static_cast<int>((value + step - 1) / step * step); }

// The type that a stored matrix is kept in.
DType packed_type(DType stored) {
  return stored == DType::kF32 || stored == DType::kF16 ? DType::kF16 : DType::kBF16;
}

// The transposed convolution's weights stand for a convolution with `stride` times as many outputs.
int64_t transposed_taps(const ConvTranspose& sizes) { return sizes.kernel / sizes.stride; }

}  // namespace

void* CudaOps::weight_memory(int64_t bytes) {
  const int64_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard lock(weight_mutex_);
  CUDA_CHECK(cudaSetDevice(options_.device));  // the codec's weights come on a thread of their own
  weights_moving_ = true;
  if (size > kPieceBytes / 4) {
    weights_.push_back(device_memory(size, queue_.stream));
    return weights_.back().get();
  }
  if (size > weight_left_) {
    weights_.push_back(device_memory(kPieceBytes, queue_.stream));
    weight_at_ = static_cast<std::byte*>(weights_.back().get());
    weight_left_ = kPieceBytes;
  }
  void* at = weight_at_;
  weight_at_ += size;
  weight_left_ -= size;
  return at;
}

View CudaOps::prepare_vector(const View& stored, float add) {
  const int64_t count = stored.elements();
  float* out = static_cast<float*>(weight_memory(count * static_cast<int64_t>(sizeof(float))));
  const int64_t step = StagingRing::kPieceBytes / static_cast<int64_t>(dtype_size(stored.type));
  for (int64_t begin = 0; begin < count; begin += step) {
    const int64_t part = std::min(step, count - begin);
    const size_t size = dtype_size(stored.type);
    staging_->pass(static_cast<const std::byte*>(stored.data) + static_cast<size_t>(begin) * size,
                   part * static_cast<int64_t>(size),
                   [stream = queue_.stream, to = out + begin, type = stored.type, part, add](const void* at) {
                     pack_vector(stream, to, at, type, part, add);
                   });
  }
  return View(out, DType::kF32, Shape{count}, Place::kDevice);
}

View CudaOps::prepare_table(const View& stored) {
  View out(weight_memory(static_cast<int64_t>(stored.bytes())), stored.type, stored.shape, Place::kDevice);
  const int64_t bytes = static_cast<int64_t>(stored.bytes());
  for (int64_t begin = 0; begin < bytes; begin += StagingRing::kPieceBytes) {
    const int64_t part = std::min(StagingRing::kPieceBytes, bytes - begin);
    staging_->pass(
        static_cast<const std::byte*>(stored.data) + begin, part,
        [stream = queue_.stream, to = static_cast<std::byte*>(out.data) + begin, part](const void* at) {
          CUDA_CHECK(cudaMemcpyAsync(to, at, static_cast<size_t>(part), cudaMemcpyDeviceToDevice, stream));
        });
  }
  return out;
}

std::shared_ptr<PackedMatrix> CudaOps::packed_matrix(int64_t n, int64_t k, int steps, DType type) {
  auto matrix = std::make_shared<PackedMatrix>();
  const int64_t bytes = static_cast<int64_t>(round_up(n, kTile)) * steps * kStepK * 2;
  *matrix = {.data = static_cast<const uint4*>(weight_memory(bytes)),
             .bias = nullptr,
             .n = static_cast<int>(n),
             .k = static_cast<int>(k),
             .steps = steps,
             .type = type};
  CUDA_CHECK(cudaMemsetAsync(const_cast<uint4*>(matrix->data), 0, static_cast<size_t>(bytes), queue_.stream));
  return matrix;
}

const float* CudaOps::packed_bias(const View& bias) {
  return bias.empty() ? nullptr : static_cast<const float*>(prepare_vector(bias, 0.0f).data);
}

void CudaOps::pack_pieces(const PackTarget& target, const PackSource& source, int64_t row_bytes,
                          bool channels) {
  const int64_t total = channels ? target.channels : target.rows;
  const int64_t step = std::max<int64_t>(1, StagingRing::kPieceBytes / row_bytes);
  for (int64_t begin = 0; begin < total; begin += step) {
    const int64_t count = std::min(step, total - begin);
    PackTarget part = target;
    (channels ? part.first_channel : part.first_row) += static_cast<int>(begin);
    (channels ? part.channels : part.rows) = static_cast<int>(count);
    staging_->pass(static_cast<const std::byte*>(source.data) + begin * row_bytes, count * row_bytes,
                   [stream = queue_.stream, part, source](const void* at) {
                     PackSource staged = source;
                     staged.data = at;
                     pack_matrix(stream, part, staged);
                   });
  }
}

void CudaOps::pack_rows(const PackedMatrix& matrix, int64_t first, const View& stored) {
  const int64_t row_bytes = stored.cols() * static_cast<int64_t>(dtype_size(stored.type));
  pack_pieces({.data = const_cast<uint4*>(matrix.data),
               .type = matrix.type,
               .first_row = static_cast<int>(first),
               .rows = static_cast<int>(stored.rows()),
               .steps = matrix.steps,
               .channels = matrix.k,
               .in_padded = matrix.steps * kStepK},
              {.data = stored.data,
               .type = stored.type,
               .low_step = stored.cols(),
               .period = static_cast<int>(stored.rows())},
              row_bytes, /*channels=*/false);
}

Linear CudaOps::prepare_linear(const StoredMatrix& stored, const View& bias) {
  const View& weight = stored.weight;
  INVARIANT(weight.dense(), "a stored matrix with gaps");
  const int steps = round_up(weight.cols(), kStepK) / kStepK;
  const auto matrix = packed_matrix(weight.rows(), weight.cols(), steps, packed_type(weight.type));
  if (stored.scale.empty()) {
    pack_rows(*matrix, 0, weight);
  } else {
    // An FP8 matrix outside the experts: its exact values rounded to BF16, 128 rows (one row of scales) at a
    // time.
    const int64_t scale_row = stored.scale.cols() * static_cast<int64_t>(dtype_size(stored.scale.type));
    for (int64_t begin = 0; begin < weight.rows(); begin += kGroup) {
      const int64_t rows = std::min<int64_t>(kGroup, weight.rows() - begin);
      std::vector<std::byte> piece(static_cast<size_t>(rows * weight.cols() + scale_row));
      std::memcpy(piece.data(), static_cast<const std::byte*>(stored.scale.data) + begin / kGroup * scale_row,
                  static_cast<size_t>(scale_row));
      std::memcpy(piece.data() + scale_row,
                  static_cast<const std::byte*>(weight.data) + begin * weight.cols(),
                  static_cast<size_t>(rows * weight.cols()));
      const PackTarget target{.data = const_cast<uint4*>(matrix->data),
                              .type = matrix->type,
                              .first_row = static_cast<int>(begin),
                              .rows = static_cast<int>(rows),
                              .steps = steps,
                              .channels = matrix->k,
                              .in_padded = steps * kStepK};
      const PackSource source{.type = weight.type,
                              .scale_type = stored.scale.type,
                              .low_step = weight.cols(),
                              .period = static_cast<int>(rows)};
      staging_->pass(piece.data(), static_cast<int64_t>(piece.size()),
                     [stream = queue_.stream, target, source, scale_row](const void* at) {
                       PackSource staged = source;
                       staged.data = static_cast<const std::byte*>(at) + scale_row;
                       staged.scale = at;
                       pack_matrix(stream, target, staged);
                     });
    }
  }
  matrix->bias = packed_bias(bias);
  return {.out = weight.rows(),
          .in = weight.cols(),
          .weight = View(const_cast<uint4*>(matrix->data), matrix->type, weight.shape, Place::kDevice),
          .scale = {},
          .bias = {},
          .packed = matrix};
}

Linear CudaOps::prepare_head(const View& stored, int64_t first, int64_t count, int64_t last) {
  const int steps = round_up(stored.cols(), kStepK) / kStepK;
  const auto matrix = packed_matrix(count + 1, stored.cols(), steps, packed_type(stored.type));
  pack_rows(*matrix, 0, View(stored).rows_from(first, count));
  pack_rows(*matrix, count, View(stored).rows_from(last, 1));
  return {.out = count + 1,
          .in = stored.cols(),
          .weight = View(const_cast<uint4*>(matrix->data), matrix->type, Shape{count + 1, stored.cols()},
                         Place::kDevice),
          .scale = {},
          .bias = {},
          .packed = matrix};
}

namespace {

// Scales are small and lie between the matrices: gathered on the host, one piece for all experts of a kind.
void add_scales(std::vector<float>& all, const View& scale) {
  for (int64_t row = 0; row < scale.rows(); ++row) {
    for (int64_t col = 0; col < scale.cols(); ++col) all.push_back(stored_value(scale, row, col));
  }
}

void require_fp8(const Linear& weight) {
  if (weight.weight.type == DType::kF8E4M3 && !weight.scale.empty()) return;
  fail("experts on CUDA: expected F8_E4M3 weights with block scales, got ", dtype_name(weight.weight.type),
       "; use --device cpu");
}

}  // namespace

Experts CudaOps::prepare_experts(std::span<const Expert> experts) {
  INVARIANT(!experts.empty());
  const int64_t hidden = experts[0].gate.in, ffn = experts[0].gate.out;
  const int64_t count = static_cast<int64_t>(experts.size());
  if (hidden % kGroup != 0 || ffn % kGroup != 0 || hidden > kMaxHidden || ffn > kMaxFfn || count > 256) {
    fail("experts on CUDA: expected at most 256 of at most ", kMaxHidden, " x ", kMaxFfn,
         ", multiples of 128, got ", count, " of ", hidden, " x ", ffn, "; use --device cpu");
  }
  auto packed = std::make_shared<PackedExperts>();
  const int64_t words = hidden * ffn / 16;  // 16-byte words of one matrix
  auto* gate_up = static_cast<uint4*>(weight_memory(count * 2 * words * 16));
  auto* down = static_cast<uint4*>(weight_memory(count * words * 16));
  struct Matrix {
    const Linear* weight;
    uint4* out;
    int stride;
  };
  std::vector<Matrix> matrices;
  std::vector<float> gate_scales, up_scales, down_scales;
  for (int64_t e = 0; e < count; ++e) {
    const Expert& expert = experts[static_cast<size_t>(e)];
    for (const Linear* weight : {&expert.gate, &expert.up, &expert.down}) require_fp8(*weight);
    matrices.push_back({&expert.gate, gate_up + e * 2 * words, 2 * kBlockWords});
    matrices.push_back({&expert.up, gate_up + e * 2 * words + kBlockWords, 2 * kBlockWords});
    matrices.push_back({&expert.down, down + e * words, kBlockWords});
    add_scales(gate_scales, expert.gate.scale);
    add_scales(up_scales, expert.up.scale);
    add_scales(down_scales, expert.down.scale);
  }
  // In the order in which they lie in their file, so that neighbours are read together.
  std::sort(matrices.begin(), matrices.end(), [](const Matrix& a, const Matrix& b) {
    return std::less<const void*>()(a.weight->weight.data, b.weight->weight.data);
  });
  for (const Matrix& matrix : matrices) {
    const View& stored = matrix.weight->weight;
    staging_->pass(
        stored.data, static_cast<int64_t>(stored.bytes()),
        [stream = queue_.stream, out = matrix.out, stride = matrix.stride,
         n = static_cast<int>(stored.rows()), k = static_cast<int>(stored.cols())](const void* at) {
          pack_codes(stream, out, static_cast<const uint8_t*>(at), n, k, stride);
        });
  }
  const auto scales = [&](const std::vector<float>& all) {
    const View view(const_cast<float*>(all.data()), DType::kF32, Shape{static_cast<int64_t>(all.size())});
    return static_cast<const float*>(prepare_vector(view, 0.0f).data);
  };
  *packed = {.gate_up = gate_up,
             .down = down,
             .gate_scale = scales(gate_scales),
             .up_scale = scales(up_scales),
             .down_scale = scales(down_scales),
             .experts = static_cast<int>(count),
             .hidden = static_cast<int>(hidden),
             .ffn = static_cast<int>(ffn)};
  return {.hidden = hidden, .ffn = ffn, .each = {}, .packed = packed};
}

Conv CudaOps::prepare_conv(const HostConv& host, const Conv& sizes) {
  Conv conv = sizes;
  const float* bias = packed_bias(host.bias);
  if (bias != nullptr)
    conv.bias = View(const_cast<float*>(bias), DType::kF32, Shape{sizes.out}, Place::kDevice);
  if (sizes.depthwise) {
    std::vector<float> taps(static_cast<size_t>(sizes.kernel * sizes.out));
    const float* from = static_cast<const float*>(host.weight.data);
    for (int64_t c = 0; c < sizes.out; ++c) {
      for (int64_t tap = 0; tap < sizes.kernel; ++tap) {
        taps[static_cast<size_t>(tap * sizes.out + c)] =
            f16_to_float(float_to_f16(from[c * sizes.kernel + tap]));
      }
    }
    const View flat(taps.data(), DType::kF32, Shape{sizes.kernel * sizes.out});
    conv.weight = prepare_vector(flat, 0.0f);
    return conv;
  }
  const int in_padded = round_up(sizes.in, kStepK);
  const int steps = static_cast<int>(sizes.kernel) * in_padded / kStepK;
  const auto matrix = packed_matrix(sizes.out, sizes.in, steps, DType::kF16);
  pack_pieces({.data = const_cast<uint4*>(matrix->data),
               .type = DType::kF16,
               .first_row = 0,
               .rows = static_cast<int>(sizes.out),
               .steps = steps,
               .channels = static_cast<int>(sizes.in),
               .in_padded = in_padded},
              {.data = host.weight.data,
               .type = DType::kF32,
               .low_step = sizes.in * sizes.kernel,
               .tap_step = 1,
               .channel_step = sizes.kernel,
               .period = static_cast<int>(sizes.out)},
              sizes.in * sizes.kernel * static_cast<int64_t>(sizeof(float)), /*channels=*/false);
  matrix->bias = bias;
  conv.packed = matrix;
  conv.weight = View(const_cast<uint4*>(matrix->data), DType::kF16, Shape{sizes.out, sizes.kernel * sizes.in},
                     Place::kDevice);
  return conv;
}

ConvTranspose CudaOps::prepare_conv_transpose(const HostConv& host, const ConvTranspose& sizes) {
  ConvTranspose conv = sizes;
  INVARIANT(sizes.kernel % sizes.stride == 0, sizes.kernel, " taps at stride ", sizes.stride);
  const int64_t taps = transposed_taps(sizes);
  const int in_padded = round_up(sizes.in, kStepK);
  const int steps = static_cast<int>(taps) * in_padded / kStepK;
  const auto matrix = packed_matrix(sizes.stride * sizes.out, sizes.in, steps, DType::kF16);
  // Packed row j * out + o, tap i' (oldest first) = stored [channel][o][j + (taps - 1 - i') * stride].
  const int64_t channel = sizes.out * sizes.kernel;
  pack_pieces({.data = const_cast<uint4*>(matrix->data),
               .type = DType::kF16,
               .first_row = 0,
               .rows = static_cast<int>(sizes.stride * sizes.out),
               .steps = steps,
               .channels = static_cast<int>(sizes.in),
               .in_padded = in_padded},
              {.data = host.weight.data,
               .type = DType::kF32,
               .base = (taps - 1) * sizes.stride,
               .high_step = 1,
               .low_step = sizes.kernel,
               .tap_step = -sizes.stride,
               .channel_step = channel,
               .period = static_cast<int>(sizes.out)},
              channel * static_cast<int64_t>(sizeof(float)), /*channels=*/true);
  matrix->bias = packed_bias(host.bias);
  conv.packed = matrix;
  conv.weight = View(const_cast<uint4*>(matrix->data), DType::kF16,
                     Shape{sizes.stride * sizes.out, taps * sizes.in}, Place::kDevice);
  return conv;
}

}  // namespace drama3
