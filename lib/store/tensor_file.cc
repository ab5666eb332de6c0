// Opens one safetensors file.
#include "lib/store/tensor_file.h"

#include "lib/base/error.h"
#include "lib/store/safetensors.h"

namespace drama3 {

TensorFile::TensorFile(const std::string& path) : TensorMap(path, {}), file_(path) {
  const uint32_t file = add_file(path);
  for (SafetensorsEntry& entry : parse_safetensors(path, file_.bytes())) {
    add({.name = std::move(entry.name),
         .type = entry.type,
         .shape = entry.shape,
         .file = file,
         .data = file_.bytes().data() + entry.begin});
  }
  file_.check_intact();
}

View TensorFile::tensor_named(const std::string& name) {
  const std::optional<View> view = find_any(name);
  if (!view) fail(file_.path(), ": tensor ", name, ": expected it in this file, got no tensor of that name");
  return *view;
}

}  // namespace drama3
