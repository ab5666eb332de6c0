// Where a text may be cut, from the end of a sentence down to the seam between two code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace drama3 {

// How good a cut is, worst first. "Inside" means within a [direction] or a whisper pair; nothing is ever cut
// inside a speaker tag.
enum class Cut : uint8_t {
  kCodePoint,  // inside a grapheme cluster (letter and accent, emoji sequence)
  kInsideCluster,
  kInsideWord,
  kInsideClause,
  kInsideSentence,
  kCluster,
  kWord,
  kClause,
  kSentence,
};

struct Boundary {
  size_t offset = 0;
  Cut cut = Cut::kCodePoint;
};

// Every place where valid UTF-8 may be cut, by rising offset, both ends of the text excluded. Cuts stand
// before white space, which so opens the next piece. A sentence ends at . ! ? and their kin in other scripts,
// closing quotes included, at a blank line and before a speaker tag; not after "Mr.", "e.g.", an initial or a
// list number, not inside numbers, and not where the text goes on in lower case. A single LF is a space.
std::vector<Boundary> find_boundaries(std::string_view text);

}  // namespace drama3
