// Gathers from tables, cache appends, counters, and the nearest entry of a codebook.
#include "kernels/cuda/tables.cuh"

#include "kernels/cuda/common/rows.cuh"
#include "kernels/cuda/common/typed.cuh"

namespace drama3 {
namespace {

template <typename T>
struct EmbedArgs {
  Rows<bf16> out;
  const int* ids = nullptr;  // [rows]
  Rows<const int> codes;
  Rows<const T> text, residual;
  int64_t text_rows = 0;
  int64_t vocabulary = 0;  // rows of one codebook in `residual`
  int64_t semantic_start = 0;
  int64_t semantic_count = 0;
  int64_t codebook = 0;
  int cols = 0;
};

// Block = one row.
template <typename T>
__global__ void __launch_bounds__(256) embed_kernel(const EmbedArgs<T> args) {
  wait_for_previous();
  allow_next();
  const int row = static_cast<int>(blockIdx.x);
  const int id = args.ids[row];
  bf16* out = args.out.row(row);
  if (id >= 0) {
    const T* text = args.text.row(clamp_index(id, args.text_rows));
    for (int c = static_cast<int>(threadIdx.x); c < args.cols; c += 256)
      out[c] = narrow<bf16>(widen(text[c]));
    return;
  }
  const int* codes = args.codes.row(row);
  const T* semantic = args.text.row(args.semantic_start + clamp_index(codes[0], args.semantic_count));
  const T* residual = args.residual.row(args.vocabulary + clamp_index(codes[1], args.vocabulary));
  for (int c = static_cast<int>(threadIdx.x); c < args.cols; c += 256) {
    out[c] = narrow<bf16>((widen(semantic[c]) + widen(residual[c])) / 1.41421356237309505f);
  }
}

template <typename T>
__global__ void __launch_bounds__(256) embed_next_kernel(const EmbedArgs<T> args) {
  wait_for_previous();
  allow_next();
  const int row = static_cast<int>(blockIdx.x);
  const int id = args.ids[row];
  const T* from = id >= 0
                      ? args.text.row(clamp_index(id, args.text_rows))
                      : args.residual.row(args.codebook * args.vocabulary +
                                          clamp_index(args.codes.row(row)[args.codebook], args.vocabulary));
  for (int c = static_cast<int>(threadIdx.x); c < args.cols; c += 256) {
    args.out.row(row)[c] = narrow<bf16>(widen(from[c]));
  }
}

template <typename T>
EmbedArgs<T> embed_args(const View& out, const RowSource& rows, const EmbedTables& tables, int64_t codebook) {
  INVARIANT(rows.ids.type == DType::kI32 && tables.text.type == tables.codes.type, "embedding tables of ",
            dtype_name(tables.text.type), " and ", dtype_name(tables.codes.type));
  return {.out = rows_of<bf16>(out),
          .ids = static_cast<const int*>(rows.ids.data),
          .codes = {static_cast<const int*>(rows.codes.data), rows.codes.row_stride},
          .text = rows_of<const T>(tables.text),
          .residual = rows_of<const T>(tables.codes),
          .text_rows = tables.text.rows(),
          .vocabulary = tables.code_vocabulary,
          .semantic_start = tables.semantic_start,
          .semantic_count = tables.semantic_count,
          .codebook = codebook,
          .cols = static_cast<int>(out.cols())};
}

template <typename T>
__global__ void __launch_bounds__(256)
    append_kernel(const Rows<T> keys, const Rows<T> values, const Rows<const T> key,
                  const Rows<const T> value, const int* position, int slots, int cols) {
  wait_for_previous();
  allow_next();
  const int row = static_cast<int>(blockIdx.x);
  const int slot = (*position + row) % slots;
  for (int c = static_cast<int>(threadIdx.x); c < cols; c += 256) {
    keys.row(slot)[c] = key.row(row)[c];
    values.row(slot)[c] = value.row(row)[c];
  }
}

__global__ void advance_kernel(int* position, int rows) {
  wait_for_previous();
  allow_next();
  *position += rows;
}

__global__ void record_kernel(int* history, int64_t stride, int rows, const int* codes, const int* frame,
                              int cols) {
  wait_for_previous();
  allow_next();
  const int c = static_cast<int>(threadIdx.x);
  if (c < cols) history[*frame % rows * stride + c] = codes[c];
}

template <typename T, typename Table>
__global__ void __launch_bounds__(256)
    lookup_kernel(const Rows<T> out, const Rows<const int> codes, const Rows<const Table> table,
                  int64_t entries, int cols) {
  wait_for_previous();
  allow_next();
  const int row = static_cast<int>(blockIdx.x);
  const Table* from = table.row(clamp_index(codes.row(row)[0], entries));
  for (int c = static_cast<int>(threadIdx.x); c < cols; c += 256) {
    out.row(row)[c] = narrow<T>(widen(from[c]));
  }
}

// Block = one row; the entry of highest cosine, ties to the lower index.
template <typename T, typename Table>
__global__ void __launch_bounds__(256)
    nearest_kernel(int* codes, int64_t codes_stride, const Rows<const T> in, const Rows<const Table> table,
                   int entries, int cols) {
  __shared__ float best[256];
  __shared__ int index[256];
  wait_for_previous();
  allow_next();
  const int row = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  float top = -INFINITY;
  int at = entries;
  for (int entry = thread; entry < entries; entry += 256) {
    float dot = 0.0f, norm = 0.0f;
    for (int c = 0; c < cols; ++c) {
      const float e = widen(table.row(entry)[c]);
      dot = fmaf(widen(in.row(row)[c]), e, dot);
      norm = fmaf(e, e, norm);
    }
    const float cosine = dot / fmaxf(sqrtf(norm), 1e-12f);
    if (cosine > top) top = cosine, at = entry;
  }
  best[thread] = top;
  index[thread] = at;
  __syncthreads();  // every thread's best is written
  if (thread != 0) return;
  for (int other = 1; other < 256; ++other) {
    if (best[other] > top || (best[other] == top && index[other] < at)) top = best[other], at = index[other];
  }
  codes[row * codes_stride] = at;
}

}  // namespace

void embed_rows(LaunchQueue& queue, const View& out, const RowSource& rows, const EmbedTables& tables) {
  with_type(tables.text.type, [&](auto t) {
    using T = decltype(t);
    launch(queue, embed_kernel<T>, {.grid = dim3(static_cast<unsigned>(out.rows()))},
           embed_args<T>(out, rows, tables, 0));
  });
}

void embed_next_rows(LaunchQueue& queue, const View& out, const RowSource& next, const EmbedTables& tables,
                     int64_t codebook) {
  with_type(tables.text.type, [&](auto t) {
    using T = decltype(t);
    launch(queue, embed_next_kernel<T>, {.grid = dim3(static_cast<unsigned>(out.rows()))},
           embed_args<T>(out, next, tables, codebook));
  });
}

void append_rows(LaunchQueue& queue, const KvCache& cache, const View& key, const View& value,
                 const View& position) {
  with_type(key.type, [&](auto t) {
    using T = decltype(t);
    launch(queue, append_kernel<T>, {.grid = dim3(static_cast<unsigned>(key.rows()))}, rows_of<T>(cache.keys),
           rows_of<T>(cache.values), rows_of<const T>(key), rows_of<const T>(value),
           static_cast<const int*>(position.data), static_cast<int>(cache.keys.rows()),
           static_cast<int>(key.cols()));
  });
}

void advance_by(LaunchQueue& queue, const View& position, int64_t rows) {
  launch(queue, advance_kernel, {.block = 1}, rows_of<int32_t>(position).data, static_cast<int>(rows));
}

void record_row(LaunchQueue& queue, const View& history, const View& codes, const View& frame) {
  launch(queue, record_kernel, {.block = 32}, rows_of<int32_t>(history).data, history.row_stride,
         static_cast<int>(history.rows()), rows_of<const int32_t>(codes).data,
         rows_of<const int32_t>(frame).data, static_cast<int>(codes.cols()));
}

void lookup_rows(LaunchQueue& queue, const View& out, const View& codes, const View& table) {
  with_type(out.type, [&](auto t) {
    using T = decltype(t);
    with_type(table.type, [&](auto u) {
      using Table = decltype(u);
      launch(queue, lookup_kernel<T, Table>, {.grid = dim3(static_cast<unsigned>(out.rows()))},
             rows_of<T>(out), rows_of<const int32_t>(codes), rows_of<const Table>(table), table.rows(),
             static_cast<int>(out.cols()));
    });
  });
}

void nearest_rows(LaunchQueue& queue, const View& codes, const View& in, const View& table) {
  with_type(in.type, [&](auto t) {
    using T = decltype(t);
    with_type(table.type, [&](auto u) {
      using Table = decltype(u);
      launch(queue, nearest_kernel<T, Table>, {.grid = dim3(static_cast<unsigned>(in.rows()))},
             rows_of<int32_t>(codes).data, codes.row_stride, rows_of<const T>(in),
             rows_of<const Table>(table), static_cast<int>(table.rows()), static_cast<int>(in.cols()));
    });
  });
}

}  // namespace drama3
