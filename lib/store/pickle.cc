// What a state dict's pickle builds (storages, tensors, dicts) and the table of tensors it ends in.
#include "lib/store/pickle.h"

#include <algorithm>
#include <optional>

#include "lib/base/checked.h"
#include "lib/store/pickle_machine.h"

namespace drama3 {
namespace pickle {

void Machine::reduce() {
  const Value arguments = pop(Kind::kTuple);
  const Value callee = pop(Kind::kGlobal);
  switch (kGlobals[callee.a].constructor) {
    case Constructor::kOrderedDict:
      if (arguments.b != 0) refuse("OrderedDict without arguments", join(arguments.b));
      dicts_.emplace_back();
      return push(Kind::kOrderedDict, dicts_.size() - 1);
    case Constructor::kRebuildTensor:
      return rebuild_tensor(arguments);
    case Constructor::kStorageClass:
      refuse("OrderedDict or _rebuild_tensor_v2 to be called", join("torch.", kGlobals[callee.a].name));
  }
}

// Attributes of an OrderedDict, such as _metadata, say nothing about its tensors.
void Machine::build() {
  pop(Kind::kDict);
  const Value target = pop(Kind::kOrderedDict);
  push(target.kind, target.a, target.b);
}

void Machine::push_storage() {
  const Value id = pop(Kind::kTuple);
  const std::span<const Value> items = items_of(id);
  const bool fits = items.size() == 5 && items[0].kind == Kind::kText && text_of(items[0]) == "storage" &&
                    items[1].kind == Kind::kGlobal &&
                    kGlobals[items[1].a].constructor == Constructor::kStorageClass &&
                    items[2].kind == Kind::kText && items[3].kind == Kind::kText;
  if (!fits) refuse("a storage (\"storage\", class, key, location, elements)", "another persistent id");
  storages_.push_back({.type = kGlobals[items[1].a].type,
                       .key = items[2],
                       .elements = natural(items[4], "a storage's length")});
  push(Kind::kStorage, storages_.size() - 1);
}

Shape Machine::natural_shape(const Value& tuple, const char* what) const {
  if (tuple.kind != Kind::kTuple || tuple.b > static_cast<uint64_t>(kMaxRank)) {
    refuse(join("a tuple of at most ", kMaxRank, " integers as ", what), kind_name(tuple.kind));
  }
  Shape shape;
  for (const Value& item : items_of(tuple)) shape.append(static_cast<int64_t>(natural(item, what)));
  return shape;
}

void Machine::rebuild_tensor(const Value& arguments) {
  if (arguments.b != 6) refuse("six arguments of _rebuild_tensor_v2", join(arguments.b));
  const std::span<const Value> items = items_of(arguments);
  if (items[0].kind != Kind::kStorage) refuse("a storage as first argument", kind_name(items[0].kind));
  if (items[4].kind != Kind::kBoolean) refuse("a boolean as requires_grad", kind_name(items[4].kind));
  if (items[5].kind != Kind::kOrderedDict || !dicts_[items[5].a].empty()) {
    refuse("an empty OrderedDict of hooks", kind_name(items[5].kind));
  }
  const Tensor tensor{.storage = storages_[items[0].a],
                      .offset = natural(items[1], "a storage offset"),
                      .shape = natural_shape(items[2], "sizes"),
                      .strides = natural_shape(items[3], "strides")};
  check_bounds(tensor);
  tensors_.push_back(tensor);
  push(Kind::kTensor, tensors_.size() - 1);
}

// offset + sum((size - 1) * stride) < elements of the storage, and no more elements than the storage has.
void Machine::check_bounds(const Tensor& tensor) const {
  if (tensor.shape.rank() != tensor.strides.rank()) {
    refuse(join(tensor.shape.rank(), " strides"), join(tensor.strides.rank()));
  }
  std::optional<uint64_t> elements = 1;
  std::optional<uint64_t> last = tensor.offset;
  bool is_empty = false;
  for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
    const auto size = static_cast<uint64_t>(tensor.shape[axis]);
    if (size == 0) is_empty = true;
    if (size == 0 || !elements || !last) continue;
    elements = checked_multiply(*elements, size);
    const auto reach = checked_multiply(size - 1, static_cast<uint64_t>(tensor.strides[axis]));
    last = reach ? checked_add(*last, *reach) : std::nullopt;
  }
  const uint64_t available = tensor.storage.elements;
  const bool fits = elements && *elements <= available && last && *last < available;
  if (!fits && !(is_empty && tensor.offset <= available)) {
    refuse(
        join("a tensor within the ", available, " elements of its storage"),
        join("offset ", tensor.offset, ", sizes ", tensor.shape.text(), ", strides ", tensor.strides.text()));
  }
}

const Items& Machine::state_dict() const {
  if (stack_.size() != 1 || !marks_.empty()) refuse("one value at STOP", join(stack_.size()));
  const auto is_dict = [](const Value& value) {
    return value.kind == Kind::kDict || value.kind == Kind::kOrderedDict;
  };
  if (!is_dict(stack_[0])) refuse("a dict of tensors", kind_name(stack_[0].kind));
  const Items& items = dicts_[stack_[0].a];
  const bool is_wrapped =
      items.size() == 1 && text_of(items[0].first) == "state_dict" && is_dict(items[0].second);
  return is_wrapped ? dicts_[items[0].second.a] : items;
}

std::string Machine::checked_name(const Value& value, const char* what) const {
  const std::string_view name = text_of(value);
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (name.empty() || name.size() > kMaxName || !is_plain) {
    refuse(join(what, " of 1 to ", kMaxName, " printable ASCII characters"), "\"" + printable(name) + "\"");
  }
  return std::string(name);
}

PickledTensor Machine::result(const Value& key, const Value& value) const {
  const std::string name = checked_name(key, "a tensor's name");
  if (value.kind != Kind::kTensor)
    fail(file_, ": pickle: ", name, ": expected a tensor, got ", kind_name(value.kind));
  const Tensor& tensor = tensors_[value.a];
  return {.name = name,
          .type = tensor.storage.type,
          .storage = checked_name(tensor.storage.key, "a storage's key"),
          .storage_elements = tensor.storage.elements,
          .offset = tensor.offset,
          .shape = tensor.shape,
          .strides = tensor.strides};
}

std::vector<PickledTensor> Machine::run() {
  if (text_.size() > kMaxBytes) refuse(join("at most ", kMaxBytes, " bytes"), join(text_.size()));
  if (take(2) != std::string_view("\x80\x02")) refuse("a pickle of protocol 2", "another beginning");
  do {
    opcode_at_ = position_;
  } while (run_opcode(static_cast<unsigned char>(take(1)[0])));
  if (position_ != text_.size()) refuse("nothing after STOP", join(text_.size() - position_, " bytes"));
  std::vector<PickledTensor> tensors;
  for (const auto& [key, value] : state_dict()) tensors.push_back(result(key, value));
  return tensors;
}

}  // namespace pickle

std::vector<PickledTensor> parse_state_dict(const std::string& file, std::span<const std::byte> bytes) {
  return pickle::Machine(file, bytes).run();
}

}  // namespace drama3
