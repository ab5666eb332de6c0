// Packing of a text into pieces: atoms between boundaries are counted once, pieces are counted exactly.
#include "lib/text/split.h"

#include <algorithm>
#include <iterator>

#include "lib/base/error.h"
#include "lib/text/boundaries.h"
#include "lib/text/marks.h"
#include "lib/text/prompt.h"
#include "lib/text/utf8.h"

namespace drama3 {

namespace {

// A place where a piece may end.
struct Candidate {
  size_t offset = 0;
  Cut cut = Cut::kCodePoint;
  int64_t rows_before = 0;  // sum over the atoms before it, an estimate of the rows up to here
};

bool ends_word(Cut cut) {
  return cut >= Cut::kWord || (cut >= Cut::kInsideWord && cut <= Cut::kInsideSentence);
}

bool ends_cluster(Cut cut) { return cut != Cut::kCodePoint; }

bool ends_code_point(Cut) { return true; }

class Splitter {
 public:
  Splitter(const Tokenizer& tokenizer, std::string_view text, int64_t budget)
      : tokenizer_(tokenizer), text_(text), budget_(budget), boundaries_(find_boundaries(text)) {}

  std::vector<TextPiece> run() {
    boundaries_.push_back({text_.size(), Cut::kSentence});
    candidates_.push_back({0, Cut::kSentence, 0});
    add_atoms(0, boundaries_.size(), 0);
    speakers_ = find_marks(text_);
    std::erase_if(speakers_, [](const Mark& mark) { return mark.kind != MarkKind::kSpeaker; });
    for (size_t at = 0; at + 1 < candidates_.size();) {
      const size_t end = piece_end(at);
      take(candidates_[at].offset, candidates_[end].offset);
      at = end;
    }
    return std::move(pieces_);
  }

 private:
  using EndsAtom = bool (*)(Cut);
  static constexpr EndsAtom kAtomKinds[] = {ends_word, ends_cluster, ends_code_point};

  // Appends the candidates of boundaries [first, last): word ends, and finer ones inside a word that is
  // longer than the budget.
  void add_atoms(size_t first, size_t last, size_t kind) {
    for (size_t begin = first; begin < last;) {
      size_t end = begin;
      while (end + 1 < last && !kAtomKinds[kind](boundaries_[end].cut)) ++end;
      const size_t offset = candidates_.back().offset;
      const int64_t rows = atom_rows(text_.substr(offset, boundaries_[end].offset - offset));
      if (rows >= budget_ && kind + 1 < std::size(kAtomKinds)) {
        add_atoms(begin, end + 1, kind + 1);
      } else {
        candidates_.push_back(
            {boundaries_[end].offset, boundaries_[end].cut, candidates_.back().rows_before + rows});
      }
      begin = end + 1;
    }
  }

  // Rows of an atom without the tag that a piece gets in front: the larger of the counts with and without the
  // blanks around it, because it may stand inside a piece or open it.
  int64_t atom_rows(std::string_view atom) const {
    return std::max(plain_rows(atom), plain_rows(trim(atom)));
  }

  int64_t plain_rows(std::string_view words) const {
    int64_t rows = 0;
    size_t taken = 0;
    const auto count = [&](size_t end) {
      rows += std::ssize(tokenizer_.encode_plain(words.substr(taken, end - taken)));
    };
    for (const Mark& mark : find_marks(words)) {
      if (mark.kind != MarkKind::kSpeaker) continue;
      count(mark.begin);
      ++rows;
      taken = mark.end;
    }
    count(words.size());
    return rows;
  }

  // The candidate that ends the piece which begins at candidate `at`: of those in reach the best kind of cut,
  // the farthest of equals.
  size_t piece_end(size_t at) const {
    const int speaker = speaker_at(candidates_[at].offset);
    int64_t reach = budget_ - 1;
    while (true) {
      size_t best = at + 1;
      for (size_t i = at + 1; i < candidates_.size() && rows_between(at, i) <= reach; ++i) {
        if (candidates_[i].cut >= candidates_[best].cut) best = i;
      }
      const size_t begin = candidates_[at].offset;
      const std::string_view piece = text_.substr(begin, candidates_[best].offset - begin);
      const int64_t rows = count_text_rows(tokenizer_, piece, speaker);
      if (rows <= budget_ || best == at + 1) return best;
      reach = std::min(reach, rows_between(at, best)) - (rows - budget_);  // the atoms' sum was too low
    }
  }

  int64_t rows_between(size_t a, size_t b) const {
    return candidates_[b].rows_before - candidates_[a].rows_before;
  }

  // The speaker of the last tag that begins before the offset; 0 when there is none.
  int speaker_at(size_t offset) const {
    const auto next = std::lower_bound(speakers_.begin(), speakers_.end(), offset,
                                       [](const Mark& mark, size_t value) { return mark.begin < value; });
    return next == speakers_.begin() ? 0 : std::prev(next)->speaker;
  }

  // Adds the piece [begin, end), or lengthens the last one by it: blanks cost nothing there, and what holds
  // no speech joins the words before it when the budget allows.
  void take(size_t begin, size_t end) {
    const std::string_view piece = text_.substr(begin, end - begin);
    const bool blank = trim(piece).empty();
    const bool speech = has_speech(piece);
    if (!pieces_.empty() && (blank || last_is_blank_ || !speech)) {
      TextPiece& last = pieces_.back();
      const std::string_view joined(last.text.data(), last.text.size() + piece.size());
      const int64_t rows = blank ? last.rows : count_text_rows(tokenizer_, joined, last.speaker);
      if (rows <= budget_) {
        last.text = joined;
        last.rows = rows;
        last.has_speech = last.has_speech || speech;
        last_is_blank_ = last_is_blank_ && blank;
        return;
      }
    }
    const int speaker = speaker_at(begin);
    pieces_.push_back({piece, speaker, count_text_rows(tokenizer_, piece, speaker), speech});
    last_is_blank_ = blank;
  }

  const Tokenizer& tokenizer_;
  std::string_view text_;
  int64_t budget_;
  std::vector<Boundary> boundaries_;
  std::vector<Candidate> candidates_;
  std::vector<Mark> speakers_;
  std::vector<TextPiece> pieces_;
  bool last_is_blank_ = false;
};

}  // namespace

std::vector<TextPiece> split_text(const Tokenizer& tokenizer, std::string_view text, int64_t budget) {
  if (budget < kLeastPieceRows) {
    fail("text: expected a budget of at least ", kLeastPieceRows, " rows a piece, got ", budget);
  }
  const int64_t rows = count_text_rows(tokenizer, text);
  if (rows <= budget) return {{text, 0, rows, has_speech(text)}};
  return Splitter(tokenizer, text, budget).run();
}

}  // namespace drama3
