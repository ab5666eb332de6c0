// The codebook entry whose direction is nearest to each row's.
#include <algorithm>
#include <cmath>

#include "kernels/host/host_ops.h"

namespace drama3 {
namespace {

constexpr float kSmallestNorm = 1e-12f;  // a zero vector has cosine 0 with everything

}  // namespace

void HostOps::nearest(const View& codes, const View& in, const View& table) {
  const int64_t width = in.cols();
  INVARIANT(codes.rows() == in.rows() && table.cols() == width, "rows ", in.shape.text(), " against table ",
            table.shape.text());
  for (int64_t r = 0; r < in.rows(); ++r) {
    const float* row = in.row<float>(r);
    float row_squares = 0.0f;
    for (int64_t c = 0; c < width; ++c) row_squares += row[c] * row[c];
    const float row_norm = std::max(std::sqrt(row_squares), kSmallestNorm);
    float best = -2.0f;          // below every cosine
    *codes.row<int32_t>(r) = 0;  // also what a row that is not a number gets
    for (int64_t entry = 0; entry < table.rows(); ++entry) {
      float squares = 0.0f;
      for (int64_t c = 0; c < width; ++c) {
        squares += stored_value(table, entry, c) * stored_value(table, entry, c);
      }
      const float norm = std::max(std::sqrt(squares), kSmallestNorm);
      float cosine = 0.0f;
      for (int64_t c = 0; c < width; ++c) {
        cosine += row[c] / row_norm * (stored_value(table, entry, c) / norm);
      }
      if (cosine > best) {
        best = cosine;
        *codes.row<int32_t>(r) = static_cast<int32_t>(entry);
      }
    }
  }
}

}  // namespace drama3
