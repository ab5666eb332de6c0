// Recognises a Git LFS pointer that stands where a downloaded file should be.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace drama3 {

// Error when the bytes are a Git LFS pointer.
inline void refuse_lfs_pointer(const std::string& file, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with("version https://git-lfs.github.com/spec/")) return;
  fail(file, ": expected the file itself, got a Git LFS pointer of ", bytes.size(),
       " bytes; download it with git lfs pull");
}

}  // namespace drama3
