// A folder of reference data: its files, and which cases stand in them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/oracle_tensor.h"
#include "lib/store/json_reader.h"
#include "lib/store/tensor_file.h"

namespace drama3 {

// One safetensors file. Error naming file and tensor for one that is absent or of another type.
class ReferenceFile {
 public:
  ReferenceFile(const std::string& path, std::string name) : name_(std::move(name)), file_(path) {}

  const std::string& name() const { return name_; }  // inside the folder
  bool has(const std::string& tensor) { return file_.shape_of(tensor).has_value(); }
  FloatTensor floats(const std::string& tensor);  // F32 or F64
  IntTensor ints(const std::string& tensor);      // I32 or U8
  std::vector<std::string> names() const { return file_.names(); }

  // X of every tensor named "Xsuffix" where X holds no dot, in the order of numbers, then of letters.
  std::vector<std::string> cases(const std::string& suffix) const;
  // The rows "<prefix><i><suffix>", i = 0, 1, ... as long as they exist, one under another.
  FloatTensor stacked(const std::string& prefix, const std::string& suffix);

 private:
  std::string name_;
  TensorFile file_;
};

class Reference {
 public:
  // Error when path is no folder.
  explicit Reference(const std::string& path);

  const std::string& path() const { return path_; }
  // The file of this name; null when the folder lacks it.
  ReferenceFile* file(const std::string& name);
  // The JSON document of this name; null when the folder lacks it.
  const JsonDocument* json(const std::string& name);

 private:
  bool has(const std::string& name) const;

  std::string path_;
  std::map<std::string, std::unique_ptr<ReferenceFile>> files_;
  std::map<std::string, JsonDocument> documents_;
};

// Token ids in an array of JSON numbers.
std::vector<int32_t> ids_in(const JsonValue& array);

}  // namespace drama3
