// Ops that gather rows from tables, append to caches and move counters.
#pragma once

#include "kernels/cuda/common/launch.cuh"
#include "lib/ops/ops.h"

namespace drama3 {

void embed_rows(LaunchQueue& queue, const View& out, const RowSource& rows, const EmbedTables& tables);
void embed_next_rows(LaunchQueue& queue, const View& out, const RowSource& next, const EmbedTables& tables,
                     int64_t codebook);
void append_rows(LaunchQueue& queue, const KvCache& cache, const View& key, const View& value,
                 const View& position);
void advance_by(LaunchQueue& queue, const View& position, int64_t rows);
void record_row(LaunchQueue& queue, const View& history, const View& codes, const View& frame);
void lookup_rows(LaunchQueue& queue, const View& out, const View& codes, const View& table);
void nearest_rows(LaunchQueue& queue, const View& codes, const View& in, const View& table);

}  // namespace drama3
