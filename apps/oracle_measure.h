// The distance of one tensor from its reference, and whether it meets a bar.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/oracle_bars.h"
#include "apps/oracle_tensor.h"

namespace drama3 {

// NaN or infinity in a result counts as an infinite error.
struct Distance {
  int64_t entries = 0;
  int64_t different = 0;  // entries that are not equal
  double worst_absolute = 0.0;
  double worst_entry = 0.0;  // |difference| / |reference|
  double relative_l2 = 0.0;
  int64_t worst_row = 0;             // index of the row with the largest relative L2
  std::vector<double> row_relative;  // descending
  std::vector<double> row_cosine;    // ascending
  std::optional<double> worst_kl;    // of logits only
  std::optional<double> overlap;     // of logits only

  double worst_row_relative() const { return row_relative.empty() ? 0.0 : row_relative.front(); }
  double worst_cosine() const { return row_cosine.empty() ? 1.0 : row_cosine.front(); }
  double median_cosine() const;
};

// Tensors of the same number of entries; rows are the reference's. Logits: KL and overlap too.
Distance distance(const FloatTensor& got, const FloatTensor& want, bool logits = false);
Distance distance(const IntTensor& got, const IntTensor& want);

// The bar of a subject; half: the column of 16-bit backends.
const Bar& bar_of(Subject subject, bool half);
// Whether the bar has any bound.
bool is_judged(const Bar& bar);
// "row L2 1e-5 but 3 rows 5e-3"; "-" when there is no bound.
std::string bar_text(const Bar& bar);
bool meets(const Distance& distance, const Bar& bar);

// Index of the largest value, the lowest on ties, and how far the second one is below it.
struct Top {
  int32_t index = 0;
  double margin = 0.0;
};
Top top_of(const float* values, int64_t count);

}  // namespace drama3
