// Unicode normalisation form C.
#pragma once

#include <string>
#include <string_view>

namespace drama3 {

// The valid UTF-8 text in normalisation form C; O(n log n) whatever combining marks it holds.
std::string to_nfc(std::string_view text);

}  // namespace drama3
