// Weight preparation: stored tensors pass through pinned slots and are packed on the device.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/pack.cuh"
#include "lib/base/check.h"
#include "lib/base/scalars.h"

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
  const int64_t step = StagingRing::kSlotBytes / static_cast<int64_t>(dtype_size(stored.type));
  for (int64_t begin = 0; begin < count; begin += step) {
    const int64_t part = std::min(step, count - begin);
    const size_t size = dtype_size(stored.type);
    staging_->pass(static_cast<const std::byte*>(stored.data) + static_cast<size_t>(begin) * size,
                   part * static_cast<int64_t>(size), [&](const void* at) {
                     pack_vector(queue_.stream, out + begin, at, stored.type, part, add);
                   });
  }
  return View(out, DType::kF32, Shape{count}, Place::kDevice);
}

View CudaOps::prepare_table(const View& stored) {
  View out(weight_memory(static_cast<int64_t>(stored.bytes())), stored.type, stored.shape, Place::kDevice);
  const int64_t bytes = static_cast<int64_t>(stored.bytes());
  for (int64_t begin = 0; begin < bytes; begin += StagingRing::kSlotBytes) {
    const int64_t part = std::min(StagingRing::kSlotBytes, bytes - begin);
    staging_->pass(static_cast<const std::byte*>(stored.data) + begin, part, [&](const void* at) {
      CUDA_CHECK(cudaMemcpyAsync(static_cast<std::byte*>(out.data) + begin, at, static_cast<size_t>(part),
                                 cudaMemcpyDeviceToDevice, queue_.stream));
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

void CudaOps::pack_rows(const PackedMatrix& matrix, int64_t first, const View& stored) {
  const int64_t row_bytes = stored.cols() * static_cast<int64_t>(dtype_size(stored.type));
  const int64_t step = std::max<int64_t>(1, StagingRing::kSlotBytes / row_bytes);
  for (int64_t begin = 0; begin < stored.rows(); begin += step) {
    const int64_t rows = std::min(step, stored.rows() - begin);
    staging_->pass(
        static_cast<const std::byte*>(stored.data) + begin * row_bytes, rows * row_bytes,
        [&](const void* at) {
          const PackTarget target{.data = const_cast<uint4*>(matrix.data),
                                  .type = matrix.type,
                                  .first_row = static_cast<int>(first + begin),
                                  .rows = static_cast<int>(rows),
                                  .steps = matrix.steps,
                                  .in = matrix.k,
                                  .in_padded = matrix.steps * kStepK};
          pack_matrix(
              queue_.stream, target,
              {.data = at, .type = stored.type, .low_step = stored.cols(), .period = static_cast<int>(rows)});
        });
  }
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
      staging_->pass(piece.data(), static_cast<int64_t>(piece.size()), [&](const void* at) {
        const PackTarget target{.data = const_cast<uint4*>(matrix->data),
                                .type = matrix->type,
                                .first_row = static_cast<int>(begin),
                                .rows = static_cast<int>(rows),
                                .steps = steps,
                                .in = matrix->k,
                                .in_padded = steps * kStepK};
        pack_matrix(queue_.stream, target,
                    {.data = static_cast<const std::byte*>(at) + scale_row,
                     .type = weight.type,
                     .scale = at,
                     .scale_type = stored.scale.type,
                     .low_step = weight.cols(),
                     .period = static_cast<int>(rows)});
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

// Scales of one matrix, widened, at out.
void pack_scales(cudaStream_t stream, StagingRing& staging, float* out, const View& scale) {
  staging.pass(scale.data, static_cast<int64_t>(scale.bytes()),
               [&](const void* at) { pack_vector(stream, out, at, scale.type, scale.elements(), 0.0f); });
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
  const int64_t scales = hidden / kGroup * (ffn / kGroup);
  auto* gate_up = static_cast<uint4*>(weight_memory(count * 2 * words * 16));
  auto* down = static_cast<uint4*>(weight_memory(count * words * 16));
  auto* gate_scale = static_cast<float*>(weight_memory(count * scales * 4));
  auto* up_scale = static_cast<float*>(weight_memory(count * scales * 4));
  auto* down_scale = static_cast<float*>(weight_memory(count * scales * 4));
  for (int64_t e = 0; e < count; ++e) {
    const Expert& expert = experts[static_cast<size_t>(e)];
    const auto pass = [&](uint4* out, const Linear& weight, int stride) {
      require_fp8(weight);
      staging_->pass(weight.weight.data, static_cast<int64_t>(weight.weight.bytes()), [&](const void* at) {
        pack_codes(queue_.stream, out, static_cast<const uint8_t*>(at), static_cast<int>(weight.out),
                   static_cast<int>(weight.in), stride);
      });
    };
    pass(gate_up + e * 2 * words, expert.gate, 2 * kBlockWords);
    pass(gate_up + e * 2 * words + kBlockWords, expert.up, 2 * kBlockWords);
    pass(down + e * words, expert.down, kBlockWords);
    pack_scales(queue_.stream, *staging_, gate_scale + e * scales, expert.gate.scale);
    pack_scales(queue_.stream, *staging_, up_scale + e * scales, expert.up.scale);
    pack_scales(queue_.stream, *staging_, down_scale + e * scales, expert.down.scale);
  }
  *packed = {.gate_up = gate_up,
             .down = down,
             .gate_scale = gate_scale,
             .up_scale = up_scale,
             .down_scale = down_scale,
             .experts = static_cast<int>(count),
             .hidden = static_cast<int>(hidden),
             .ffn = static_cast<int>(ffn)};
  return {.hidden = hidden, .ffn = ffn, .each = {}, .packed = packed};
}

namespace {

// Folded weights on the device for as long as they are packed.
std::shared_ptr<void> on_device(const View& host, cudaStream_t stream) {
  std::shared_ptr<void> memory = device_memory(static_cast<int64_t>(host.bytes()), stream);
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaMemcpy(memory.get(), host.data, host.bytes(), cudaMemcpyHostToDevice));
  return memory;
}

}  // namespace

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
  const std::shared_ptr<void> stored = on_device(host.weight, queue_.stream);
  pack_matrix(queue_.stream,
              {.data = const_cast<uint4*>(matrix->data),
               .type = DType::kF16,
               .first_row = 0,
               .rows = static_cast<int>(sizes.out),
               .steps = steps,
               .in = static_cast<int>(sizes.in),
               .in_padded = in_padded},
              {.data = stored.get(),
               .type = DType::kF32,
               .low_step = sizes.in * sizes.kernel,
               .tap_step = 1,
               .channel_step = sizes.kernel,
               .period = static_cast<int>(sizes.out)});
  CUDA_CHECK(cudaStreamSynchronize(queue_.stream));
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
  const std::shared_ptr<void> stored = on_device(host.weight, queue_.stream);
  // Packed row j * out + o, tap i' (oldest first) = stored [channel][o][j + (taps - 1 - i') * stride].
  pack_matrix(queue_.stream,
              {.data = const_cast<uint4*>(matrix->data),
               .type = DType::kF16,
               .first_row = 0,
               .rows = static_cast<int>(sizes.stride * sizes.out),
               .steps = steps,
               .in = static_cast<int>(sizes.in),
               .in_padded = in_padded},
              {.data = stored.get(),
               .type = DType::kF32,
               .base = (taps - 1) * sizes.stride,
               .high_step = 1,
               .low_step = sizes.kernel,
               .tap_step = -sizes.stride,
               .channel_step = sizes.out * sizes.kernel,
               .period = static_cast<int>(sizes.out)});
  CUDA_CHECK(cudaStreamSynchronize(queue_.stream));
  matrix->bias = packed_bias(host.bias);
  conv.packed = matrix;
  conv.weight = View(const_cast<uint4*>(matrix->data), DType::kF16,
                     Shape{sizes.stride * sizes.out, taps * sizes.in}, Place::kDevice);
  return conv;
}

}  // namespace drama3
