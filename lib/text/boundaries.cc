// The scan for boundaries: grapheme clusters, what stands before and after them, and the marks around them.
#include "lib/text/boundaries.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "lib/text/marks.h"
#include "lib/text/utf8.h"

namespace drama3 {

namespace {

constexpr size_t kWordClusters = 24;   // no abbreviation is longer
constexpr size_t kOpenerClusters = 8;  // quotes and brackets looked through for the next letter

template <size_t kCount>
bool is_one_of(int32_t point, const std::array<int32_t, kCount>& list) {
  return std::find(list.begin(), list.end(), point) != list.end();
}

template <size_t kCount>
bool is_one_of(std::string_view word, const std::array<std::string_view, kCount>& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Stops that end a sentence where white space follows: ! ? and their like in scripts that use spaces.
constexpr std::array<int32_t, 14> kSpacedStops = {'!',    '?',    0x203d, 0x2047, 0x2048, 0x2049, 0x203c,
                                                  0x061f, 0x06d4, 0x0964, 0x0965, 0x0589, 0x1362, 0x1367};
// Stops that end a sentence whatever follows: ideographic and full-width, Burmese, Khmer.
constexpr std::array<int32_t, 7> kFullStops = {0x3002, 0xff01, 0xff1f, 0xff61, 0xff0e, 0x104b, 0x17d4};
constexpr std::array<int32_t, 7> kSpacedCommas = {',', ';', ':', 0x2013, 0x060c, 0x061b, 0x037e};
constexpr std::array<int32_t, 7> kFullCommas = {0x3001, 0xff0c, 0xff1b, 0xff1a, 0xff64, 0x2014, 0x2015};
constexpr std::array<int32_t, 3> kMarkdownClosers = {'*', '_', '`'};
constexpr int32_t kEllipsis = 0x2026;

// Written before a name: a full stop after them never ends a sentence.
constexpr std::array<std::string_view, 30> kTitles = {
    "mr",   "mrs", "ms",  "mx",   "dr",   "prof",   "st",   "sr",  "jr",  "sen",
    "rep",  "gov", "gen", "col",  "capt", "lt",     "sgt",  "rev", "hon", "mme",
    "mlle", "mt",  "ft",  "pres", "supt", "messrs", "dipl", "vs",  "bzw", "ing"};
// Written before a number: no end when a digit follows.
constexpr std::array<std::string_view, 31> kBeforeNumber = {
    "no",  "nos",  "nr",     "vol", "fig", "figs", "p",   "pp",  "ch",  "sec", "art",
    "eq",  "ca",   "approx", "est", "jan", "feb",  "mar", "apr", "jun", "jul", "aug",
    "sep", "sept", "oct",    "nov", "dec", "tel",  "op",  "s",   "ed"};
// Letters with full stops between that go on even before a capital.
constexpr std::array<std::string_view, 7> kInner = {"e.g", "i.e", "z.b", "d.h", "u.a", "p.s", "n.b"};

bool is_closer(int32_t point) {
  switch (utf8proc_category(point)) {
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PF:
      return true;
    default:
      return point == '"' || point == '\'' || is_one_of(point, kMarkdownClosers);
  }
}

bool is_opener(int32_t point) {
  switch (utf8proc_category(point)) {
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PI:
      return true;
    default:
      return point == '"' || point == '\'' || is_one_of(point, kMarkdownClosers);
  }
}

bool is_digit(int32_t point) { return utf8proc_category(point) == UTF8PROC_CATEGORY_ND; }
bool is_lower(int32_t point) { return utf8proc_category(point) == UTF8PROC_CATEGORY_LL; }

bool is_letter(int32_t point) {
  const utf8proc_category_t category = utf8proc_category(point);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

// One grapheme cluster: where it begins and its first code point.
struct Cluster {
  size_t begin = 0;
  int32_t point = 0;
};

class BoundaryScan {
 public:
  explicit BoundaryScan(std::string_view text) : text_(text), marks_(find_marks(text)) {}

  std::vector<Boundary> run() {
    find_clusters();
    classify();
    std::vector<Boundary> all;
    all.reserve(clusters_.size() + inner_.size());
    std::merge(boundaries_.begin(), boundaries_.end(), inner_.begin(), inner_.end(), std::back_inserter(all),
               [](const Boundary& a, const Boundary& b) { return a.offset < b.offset; });
    return apply_marks(all);
  }

 private:
  void find_clusters() {
    utf8proc_int32_t state = 0;
    int32_t previous = 0;
    for (size_t i = 0; i < text_.size();) {
      const CodePoint point = code_point_at(text_, i);
      if (i == 0 || utf8proc_grapheme_break_stateful(previous, point.value, &state)) {
        clusters_.push_back({i, point.value});
      } else {
        inner_.push_back({i, Cut::kCodePoint});
      }
      previous = point.value;
      i += point.bytes;
    }
  }

  void classify() {
    for (size_t i = 1; i < clusters_.size(); ++i) {
      const bool space_before = is_white_space(clusters_[i - 1].point);
      Cut cut = Cut::kCluster;
      if (!space_before) cut = is_white_space(clusters_[i].point) ? before_space(i) : between_signs(i);
      boundaries_.push_back({clusters_[i].begin, cut});
    }
  }

  // The last cluster before i that is no closing quote or bracket; i itself when all are.
  size_t before_closers(size_t i) const {
    for (size_t at = i; at-- > 0;) {
      if (!is_closer(clusters_[at].point)) return at;
    }
    return i;
  }

  // The cut between a sign and the white space at i.
  Cut before_space(size_t i) const {
    size_t next = i;
    int lines = 0;
    for (; next < clusters_.size() && is_white_space(clusters_[next].point); ++next) {
      lines += clusters_[next].point == '\n' ? 1 : clusters_[next].point == 0x2029 ? 2 : 0;
    }
    if (lines > 1 || starts_speaker(next)) return Cut::kSentence;
    const size_t stop = before_closers(i);
    if (stop == i) return Cut::kWord;
    const int32_t point = clusters_[stop].point;
    if (is_one_of(point, kFullStops)) return Cut::kSentence;
    const int32_t following = letter_at(next);
    if (is_one_of(point, kSpacedStops)) return is_lower(following) ? Cut::kClause : Cut::kSentence;
    if (point == kEllipsis || point == '.') {
      return ends_sentence(stop, following) ? Cut::kSentence : Cut::kWord;
    }
    const bool comma = is_one_of(point, kSpacedCommas) || is_one_of(point, kFullCommas);
    const bool dash = point == '-' && stop + 1 == i && stop > 0 && is_white_space(clusters_[stop - 1].point);
    return comma || dash ? Cut::kClause : Cut::kWord;
  }

  // The cut between two signs without white space: only scripts without spaces, and dashes, have good ones.
  Cut between_signs(size_t i) const {
    if (starts_speaker(i)) return Cut::kSentence;
    const int32_t here = clusters_[i].point;
    if (is_closer(here) || is_one_of(here, kFullStops) || is_one_of(here, kFullCommas)) return Cut::kCluster;
    const size_t stop = before_closers(i);
    if (stop == i) return Cut::kCluster;
    if (is_one_of(clusters_[stop].point, kFullStops)) return Cut::kSentence;
    return is_one_of(clusters_[stop].point, kFullCommas) ? Cut::kClause : Cut::kCluster;
  }

  bool starts_speaker(size_t i) const {
    return i < clusters_.size() && leading_speaker(text_.substr(clusters_[i].begin)).has_value();
  }

  // The code point at i, looking through opening quotes and brackets; 0 at the end of the text.
  int32_t letter_at(size_t i) const {
    const size_t limit = std::min(clusters_.size(), i + kOpenerClusters);
    while (i < limit && is_opener(clusters_[i].point)) ++i;
    return i < clusters_.size() ? clusters_[i].point : 0;
  }

  // Whether the full stop or ellipsis at `stop`, with white space and then `following` behind it, ends a
  // sentence.
  bool ends_sentence(size_t stop, int32_t following) const {
    if (is_lower(following)) return false;
    if (clusters_[stop].point == kEllipsis || (stop > 0 && clusters_[stop - 1].point == '.')) return true;
    size_t begin = stop;
    std::string word;  // the word before the stop in lower case, full stops inside it included
    while (begin > 0 && stop - begin < kWordClusters) {
      const int32_t point = clusters_[begin - 1].point;
      if (!is_letter(point) && !is_digit(point) && point != '.') break;
      --begin;
    }
    bool digits = begin < stop;
    for (size_t i = begin; i < stop; ++i) {
      append_utf8(word, utf8proc_tolower(clusters_[i].point));
      digits = digits && is_digit(clusters_[i].point);
    }
    if (digits)
      return begin > 0 && clusters_[begin - 1].point != '\n';  // a number that opens a line is a list's
    if (is_one_of(word, kTitles) || is_one_of(word, kInner)) return false;
    if (is_digit(following) && is_one_of(word, kBeforeNumber)) return false;
    if (stop - begin == 1) return word == "i";  // an initial, but for "So do I."
    const bool initials = stop - begin >= 3 && is_spelled_by_stops(begin, stop);
    return !initials || word == "a.m" || word == "p.m";
  }

  // "U.S": every second cluster is a full stop.
  bool is_spelled_by_stops(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i) {
      if ((clusters_[i].point == '.') != ((i - begin) % 2 == 1)) return false;
    }
    return true;
  }

  // Drops what lies inside speaker tags, lowers what lies inside directions and whispers, and makes their two
  // ends at least word boundaries.
  std::vector<Boundary> apply_marks(const std::vector<Boundary>& all) const {
    std::vector<size_t> edges;
    for (const Mark& mark : marks_) {
      if (mark.kind != MarkKind::kSpeaker) edges.insert(edges.end(), {mark.begin, mark.end});
    }
    std::sort(edges.begin(), edges.end());
    std::vector<Boundary> kept;
    kept.reserve(all.size());
    size_t tag_end = 0;   // end of the last speaker tag begun
    size_t span_end = 0;  // end of the longest direction or whisper begun
    auto mark = marks_.begin();
    for (Boundary boundary : all) {
      for (; mark != marks_.end() && mark->begin < boundary.offset; ++mark) {
        size_t& end = mark->kind == MarkKind::kSpeaker ? tag_end : span_end;
        end = std::max(end, mark->end);
      }
      if (boundary.offset < tag_end) continue;
      const bool edge = std::binary_search(edges.begin(), edges.end(), boundary.offset);
      if (edge && boundary.cut < Cut::kWord) boundary.cut = Cut::kWord;
      if (boundary.offset < span_end && boundary.cut >= Cut::kCluster) {
        const int lowered = static_cast<int>(boundary.cut) - static_cast<int>(Cut::kCluster);
        boundary.cut = static_cast<Cut>(static_cast<int>(Cut::kInsideCluster) + lowered);
      }
      kept.push_back(boundary);
    }
    return kept;
  }

  std::string_view text_;
  std::vector<Mark> marks_;
  std::vector<Cluster> clusters_;
  std::vector<Boundary> boundaries_;  // between clusters
  std::vector<Boundary> inner_;       // inside clusters
};

}  // namespace

std::vector<Boundary> find_boundaries(std::string_view text) { return BoundaryScan(text).run(); }

}  // namespace drama3
