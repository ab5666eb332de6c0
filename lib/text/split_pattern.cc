// Splitting by PCRE2: just-in-time compiled where the machine allows it, interpreted otherwise.
#include "lib/text/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <new>

#include "lib/base/error.h"
#include "lib/text/utf8.h"

namespace drama3 {

namespace {

constexpr size_t kPatternBytes = 16384;
constexpr uint32_t kMatchLimit = 10'000'000;                           // backtracking steps for one match
constexpr uint32_t kHeapLimit = 32768;                                 // KiB for one match
constexpr std::string_view kMongolianVowelSeparator = "\xe1\xa0\x8e";  // U+180E
constexpr std::string_view kZeroWidthSpace = "\xe2\x80\x8b";           // U+200B

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> message{};
  pcre2_get_error_message(code, message.data(), message.size());
  return reinterpret_cast<const char*>(message.data());
}

// The text as the pattern shall see it. PCRE2's \s holds U+180E, which Unicode no longer counts as white
// space and which the tokenizers library's \s leaves out; U+200B has the same category and length and is not
// in it.
std::string_view as_matched(std::string_view text, std::string& copy) {
  size_t found = text.find(kMongolianVowelSeparator);
  if (found == std::string_view::npos) return text;
  copy = text;
  for (; found != std::string::npos; found = copy.find(kMongolianVowelSeparator, found)) {
    copy.replace(found, kZeroWidthSpace.size(), kZeroWidthSpace);
  }
  return copy;
}

}  // namespace

struct SplitPattern::Compiled {
  std::unique_ptr<pcre2_code, FreeCode> code;
  std::string file;
};

SplitPattern::SplitPattern(const std::string& pattern, const std::string& file)
    : compiled_(std::make_unique<Compiled>()) {
  if (pattern.size() > kPatternBytes) {
    fail(file, ": split pattern: expected at most ", kPatternBytes, " bytes, got ", pattern.size());
  }
  int error = 0;
  PCRE2_SIZE offset = 0;
  compiled_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset,
                                      nullptr));
  if (!compiled_->code) {
    fail(file, ": split pattern: expected a regular expression, got an error at character ", offset, ": ",
         message_of(error));
  }
  pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE);  // where it fails, matching is interpreted
  compiled_->file = file;
}

SplitPattern::~SplitPattern() = default;
SplitPattern::SplitPattern(SplitPattern&&) noexcept = default;
SplitPattern& SplitPattern::operator=(SplitPattern&&) noexcept = default;

void SplitPattern::split(std::string_view text, const std::function<void(std::string_view)>& take) const {
  std::string copy;
  const std::string_view seen = as_matched(text, copy);
  std::unique_ptr<pcre2_match_data, FreeMatchData> data(
      pcre2_match_data_create_from_pattern(compiled_->code.get(), nullptr));
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context(pcre2_match_context_create(nullptr));
  if (!data || !context) throw std::bad_alloc();
  pcre2_set_match_limit(context.get(), kMatchLimit);
  pcre2_set_heap_limit(context.get(), kHeapLimit);
  const auto match_from = [&](size_t offset, uint32_t options) {
    return pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(seen.data()), seen.size(), offset,
                       options, data.get(), context.get());
  };
  size_t taken = 0;   // the pieces before it are handed out
  size_t search = 0;  // where the next match may start
  while (search < text.size()) {
    // The text was checked once by the caller; checking it again at each match would be quadratic.
    int found = match_from(search, PCRE2_NO_UTF_CHECK);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match_from(search, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      fail(compiled_->file, ": split pattern: expected to match within ", kMatchLimit,
           " steps, got: ", message_of(found));
    }
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    if (ends[1] <= ends[0] || ends[0] < search) {  // an empty match splits nothing
      search += code_point_at(text, search).bytes;
      continue;
    }
    if (ends[0] > taken) take(text.substr(taken, ends[0] - taken));
    take(text.substr(ends[0], ends[1] - ends[0]));
    taken = search = ends[1];
  }
  if (taken < text.size()) take(text.substr(taken));
}

}  // namespace drama3
