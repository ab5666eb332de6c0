// Host memory, weight preparation and row movement for the reference and the CPU backend.
#include "kernels/host/host_ops.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <string>
#include <utility>

namespace drama3 {
namespace {

constexpr size_t kAlignment = 64;

// Rows of any stored float type as a dense F32 row.
void widen_row(float* out, const View& view, int64_t row) {
  for (int64_t col = 0; col < view.cols(); ++col) out[col] = stored_value(view, row, col);
}

int64_t clamped(int64_t value, int64_t count) { return value < 0 ? 0 : value < count ? value : count - 1; }

}  // namespace

Buffer HostOps::allocate(DType type, const Shape& shape) {
  View view(nullptr, type, shape);
  const size_t bytes = (view.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, bytes == 0 ? kAlignment : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  view.data = memory;
  return {view, std::shared_ptr<void>(memory, std::free)};
}

void HostOps::upload(const View& out, const View& host) {
  INVARIANT(out.rows() == host.rows() && out.cols() == host.cols(), out.shape.text(), " from ",
            host.shape.text());
  if (out.type == host.type) return copy(out, host);
  INVARIANT(out.type == DType::kF32, "host rows are F32, not ", dtype_name(out.type));
  for (int64_t r = 0; r < out.rows(); ++r) widen_row(out.row<float>(r), host, r);
}

void HostOps::download(const View& host, const View& in) { upload(host, in); }

void HostOps::send(int slot, const View& in) {
  INVARIANT(in.dense() && static_cast<int64_t>(in.bytes()) <= kMailBytes, "mail of ", in.bytes());
  std::memcpy(mail_.at(static_cast<size_t>(slot)).data(), in.data, in.bytes());
}

void HostOps::receive(const View& host, int slot) {
  INVARIANT(host.dense() && static_cast<int64_t>(host.bytes()) <= kMailBytes, "mail of ", host.bytes());
  std::memcpy(host.data, mail_.at(static_cast<size_t>(slot)).data(), host.bytes());
}

void HostOps::copy(const View& out, const View& in) {
  INVARIANT(out.rows() == in.rows() && out.cols() == in.cols() && out.type == in.type, out.shape.text(),
            " from ", in.shape.text());
  const size_t element = dtype_size(out.type);
  const size_t row_bytes = static_cast<size_t>(out.cols()) * element;
  for (int64_t r = 0; r < out.rows(); ++r) {
    std::memmove(static_cast<std::byte*>(out.data) + static_cast<size_t>(r * out.row_stride) * element,
                 static_cast<const std::byte*>(in.data) + static_cast<size_t>(r * in.row_stride) * element,
                 row_bytes);
  }
}

void HostOps::fill(const View& out, int byte) {
  INVARIANT(out.dense(), "fill of a strided view");
  std::memset(out.data, byte, out.bytes());
}

int64_t HostOps::free_bytes() const {
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name;) {
    int64_t kibibytes = 0;
    if (name == "MemAvailable:" && file >> kibibytes) return kibibytes * 1024;
  }
  return std::numeric_limits<int64_t>::max();  // a system that does not say
}

View HostOps::prepare_vector(const View& stored, float add) {
  Buffer buffer = allocate(DType::kF32, Shape{stored.elements()});
  float* out = buffer.view.row<float>(0);
  const View flat(stored.data, stored.type, Shape{stored.elements()});
  for (int64_t i = 0; i < stored.elements(); ++i) out[i] = add + stored_value(flat, 0, i);
  owned_.push_back(buffer);
  return buffer.view;
}

View HostOps::prepare_table(const View& stored) { return stored; }

Linear HostOps::prepare_linear(const StoredMatrix& stored, const View& bias) {
  return {.out = stored.weight.rows(),
          .in = stored.weight.cols(),
          .weight = stored.weight,
          .scale = stored.scale,
          .bias = bias.empty() ? View{} : prepare_vector(bias, 0.0f),
          .packed = nullptr};
}

Linear HostOps::prepare_head(const View& stored, int64_t first, int64_t count, int64_t last) {
  Buffer rows = allocate(stored.type, Shape{count + 1, stored.cols()});
  copy(rows.view.rows_from(0, count), stored.rows_from(first, count));
  copy(rows.view.rows_from(count, 1), stored.rows_from(last, 1));
  owned_.push_back(rows);
  return {
      .out = count + 1, .in = stored.cols(), .weight = rows.view, .scale = {}, .bias = {}, .packed = nullptr};
}

Experts HostOps::prepare_experts(std::span<const Expert> experts) {
  INVARIANT(!experts.empty());
  return {.hidden = experts[0].gate.in,
          .ffn = experts[0].gate.out,
          .each = std::vector<Expert>(experts.begin(), experts.end()),
          .packed = nullptr};
}

namespace {

// [kernel, in, out] from [out, in, kernel] (or [in, out, kernel] when transposed); depthwise has one input.
Buffer pack_taps(HostOps& ops, const View& weight, bool transposed) {
  const int64_t first = weight.shape[0], second = weight.shape[1], kernel = weight.shape[2];
  const int64_t in = transposed ? first : second;
  const int64_t out = transposed ? second : first;
  Buffer packed = ops.allocate(DType::kF32, Shape{kernel, in, out});
  const float* from = static_cast<const float*>(weight.data);
  float* to = static_cast<float*>(packed.view.data);
  for (int64_t k = 0; k < kernel; ++k) {
    for (int64_t i = 0; i < in; ++i) {
      for (int64_t o = 0; o < out; ++o) {
        const int64_t source = transposed ? i * out + o : o * in + i;
        to[(k * in + i) * out + o] = from[source * kernel + k];
      }
    }
  }
  return packed;
}

}  // namespace

Conv HostOps::prepare_conv(const HostConv& host, const Conv& sizes) {
  Conv conv = sizes;
  const Buffer packed = pack_taps(*this, host.weight, /*transposed=*/false);
  conv.weight = packed.view;
  conv.packed = packed.owner;
  if (!host.bias.empty()) conv.bias = prepare_vector(host.bias, 0.0f);
  return conv;
}

ConvTranspose HostOps::prepare_conv_transpose(const HostConv& host, const ConvTranspose& sizes) {
  ConvTranspose conv = sizes;
  const Buffer packed = pack_taps(*this, host.weight, /*transposed=*/true);
  conv.weight = packed.view;
  conv.packed = packed.owner;
  if (!host.bias.empty()) conv.bias = prepare_vector(host.bias, 0.0f);
  return conv;
}

void HostOps::embed(const View& out, const RowSource& rows, const EmbedTables& tables) {
  for (int64_t r = 0; r < out.rows(); ++r) {
    float* to = out.row<float>(r);
    const int64_t id = rows.ids.row<int32_t>(0)[r];
    if (id >= 0) {
      widen_row(to, tables.text, clamped(id, tables.text.rows()));
      continue;
    }
    const int32_t* codes = rows.codes.row<int32_t>(r);
    const int64_t semantic = tables.semantic_start + clamped(codes[0], tables.semantic_count);
    const int64_t residual = tables.code_vocabulary + clamped(codes[1], tables.code_vocabulary);
    for (int64_t c = 0; c < out.cols(); ++c) {
      to[c] = (stored_value(tables.text, semantic, c) + stored_value(tables.codes, residual, c)) /
              std::sqrt(2.0f);
    }
  }
}

void HostOps::embed_next(const View& out, const RowSource& next, const EmbedTables& tables,
                         int64_t codebook) {
  for (int64_t r = 0; r < out.rows(); ++r) {
    const int64_t id = next.ids.row<int32_t>(0)[r];
    if (id >= 0) {
      widen_row(out.row<float>(r), tables.text, clamped(id, tables.text.rows()));
      continue;
    }
    const int64_t code = clamped(next.codes.row<int32_t>(r)[codebook], tables.code_vocabulary);
    widen_row(out.row<float>(r), tables.codes, codebook * tables.code_vocabulary + code);
  }
}

void HostOps::append_kv(const KvCache& cache, const View& key, const View& value, const View& position) {
  const int64_t slots = cache.keys.rows();
  const int64_t first = *position.row<int32_t>(0);
  for (int64_t r = 0; r < key.rows(); ++r) {
    const int64_t slot = (first + r) % slots;
    copy(cache.keys.rows_from(slot, 1), key.rows_from(r, 1));
    copy(cache.values.rows_from(slot, 1), value.rows_from(r, 1));
  }
}

void HostOps::advance(const View& position, int64_t rows) {
  *position.row<int32_t>(0) += static_cast<int32_t>(rows);
}

void HostOps::record_codes(const View& history, const View& codes, const View& frame) {
  const int64_t slot = *frame.row<int32_t>(0) % history.rows();
  copy(history.rows_from(slot, 1), codes);
}

void HostOps::lookup(const View& out, const View& codes, const View& table) {
  for (int64_t r = 0; r < out.rows(); ++r) {
    widen_row(out.row<float>(r), table, clamped(*codes.row<int32_t>(r), table.rows()));
  }
}

}  // namespace drama3
