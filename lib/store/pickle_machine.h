// The pickle machine: a stack of small values over pools; every opcode is checked and all counts are bounded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/store/pickle.h"

namespace drama3::pickle {

inline constexpr uint64_t kMaxBytes = 16 << 20;
// Values pushed in the course of one pickle; a tensor takes about 25.
inline constexpr uint64_t kMaxValues = 1 << 18;
inline constexpr size_t kMaxMarks = 64;  // nesting of tuples and item lists
inline constexpr size_t kMaxName = 255;

enum class Kind : uint8_t {
  kUnset,
  kNone,
  kBoolean,
  kInteger,
  kText,
  kTuple,
  kDict,
  kOrderedDict,
  kGlobal,
  kStorage,
  kTensor
};

inline const char* kind_name(Kind kind) {
  constexpr std::array kNames = {"nothing", "None",           "a boolean", "an integer", "text",    "a tuple",
                                 "a dict",  "an OrderedDict", "a global",  "a storage",  "a tensor"};
  return kNames[static_cast<size_t>(kind)];
}

// a: integer bits, offset of text, first item of a tuple, or index into a pool; b: length of text or tuple.
struct Value {
  Kind kind = Kind::kUnset;
  uint64_t a = 0;
  uint64_t b = 0;
};

enum class Constructor : uint8_t { kOrderedDict, kRebuildTensor, kStorageClass };

// Every global that a tensor state dict names.
struct Global {
  std::string_view module;
  std::string_view name;
  Constructor constructor;
  DType type;  // of a storage class
};
inline constexpr std::array kGlobals = {
    Global{"collections", "OrderedDict", Constructor::kOrderedDict, DType::kF32},
    Global{"torch._utils", "_rebuild_tensor_v2", Constructor::kRebuildTensor, DType::kF32},
    Global{"torch", "FloatStorage", Constructor::kStorageClass, DType::kF32},
    Global{"torch", "HalfStorage", Constructor::kStorageClass, DType::kF16},
    Global{"torch", "BFloat16Storage", Constructor::kStorageClass, DType::kBF16},
    Global{"torch", "LongStorage", Constructor::kStorageClass, DType::kI64},
    Global{"torch", "IntStorage", Constructor::kStorageClass, DType::kI32},
    Global{"torch", "ShortStorage", Constructor::kStorageClass, DType::kI16},
    Global{"torch", "CharStorage", Constructor::kStorageClass, DType::kI8},
    Global{"torch", "ByteStorage", Constructor::kStorageClass, DType::kU8},
    Global{"torch", "BoolStorage", Constructor::kStorageClass, DType::kBool},
};

struct Storage {
  DType type;
  Value key;
  uint64_t elements;
};

struct Tensor {
  Storage storage;
  uint64_t offset;
  Shape shape;
  Shape strides;
};

using Items = std::vector<std::pair<Value, Value>>;

inline std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kMaxName)) out += (c >= 0x20 && c < 0x7f) ? c : '?';
  return out;
}

// Runs one pickle; opcodes are in pickle_opcodes.cc, what they build and the result in pickle.cc.
class Machine {
 public:
  Machine(const std::string& file, std::span<const std::byte> bytes)
      : file_(file), text_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}

  std::vector<PickledTensor> run();

 private:
  [[noreturn]] void refuse(const std::string& expected, const std::string& got) const {
    fail(file_, ": pickle, byte ", opcode_at_, ": expected ", expected, ", got ", got);
  }
  std::string_view take(uint64_t count);
  std::string_view take_line();
  uint64_t take_number(int size);
  void push(Kind kind, uint64_t a = 0, uint64_t b = 0);
  Value pop();
  Value pop(Kind kind);
  size_t pop_mark();
  std::span<const Value> items_of(const Value& tuple) const {
    return std::span(tuple_items_).subspan(tuple.a, tuple.b);
  }
  std::string_view text_of(const Value& value) const { return text_.substr(value.a, value.b); }
  uint64_t natural(const Value& value, const char* what) const;

  bool run_opcode(unsigned char opcode);  // false: STOP
  bool run_scalar(unsigned char opcode);  // false: none of its opcodes
  bool run_container(unsigned char opcode);
  bool run_memo(unsigned char opcode);
  void push_long();
  void push_text();
  void push_global();
  void push_tuple(size_t first);
  void put(uint64_t index);
  void get(uint64_t index);
  void set_items(size_t first);
  void reduce();
  void build();
  void push_storage();
  void rebuild_tensor(const Value& arguments);
  Shape natural_shape(const Value& tuple, const char* what) const;
  void check_bounds(const Tensor& tensor) const;

  const Items& state_dict() const;
  PickledTensor result(const Value& key, const Value& value) const;
  std::string checked_name(const Value& value, const char* what) const;

  const std::string& file_;
  std::string_view text_;
  uint64_t position_ = 0;
  uint64_t opcode_at_ = 0;
  uint64_t pushed_ = 0;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::vector<Value> memo_;
  std::vector<Value> tuple_items_;
  std::vector<Items> dicts_;
  std::vector<Storage> storages_;
  std::vector<Tensor> tensors_;
};

}  // namespace drama3::pickle
