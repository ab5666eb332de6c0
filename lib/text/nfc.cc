// Normalisation form C from utf8proc's decompositions and compositions.
#include "lib/text/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "lib/base/check.h"
#include "lib/text/utf8.h"

namespace drama3 {

namespace {

constexpr int kDecompositionMax = 32;  // the longest canonical decomposition of one code point has 4

// Appends the canonical decomposition of one code point.
void decompose(int32_t code_point, std::vector<int32_t>& out) {
  utf8proc_int32_t parts[kDecompositionMax];
  int boundclass = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      code_point, parts, kDecompositionMax,
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE), &boundclass);
  INVARIANT(count > 0 && count <= kDecompositionMax, "decomposition of ", code_point, ": ", count);
  out.insert(out.end(), parts, parts + count);
}

// Puts each run of combining marks into canonical order. utf8proc_map sorts such runs too, but in quadratic
// time, which a megabyte of marks would turn into hours.
void order_marks(std::vector<int32_t>& points) {
  const auto combining_class = [](int32_t point) { return utf8proc_get_property(point)->combining_class; };
  const auto is_starter = [&](int32_t point) { return combining_class(point) == 0; };
  for (auto run = points.begin(); run != points.end();) {
    run = std::find_if_not(run, points.end(), is_starter);
    const auto end = std::find_if(run, points.end(), is_starter);
    std::stable_sort(run, end, [&](int32_t a, int32_t b) { return combining_class(a) < combining_class(b); });
    run = end;
  }
}

}  // namespace

std::string to_nfc(std::string_view text) {
  const bool ascii =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (ascii) return std::string(text);
  std::vector<int32_t> points;
  points.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    decompose(point.value, points);
    i += point.bytes;
  }
  order_marks(points);
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  INVARIANT(count >= 0, "utf8proc_normalize_utf32 answers ", count);
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < count; ++i) append_utf8(out, points[static_cast<size_t>(i)]);
  return out;
}

}  // namespace drama3
