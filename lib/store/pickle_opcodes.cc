// The opcodes of the pickle machine: operands, stack, marks, memo.
#include "lib/store/pickle_machine.h"

namespace drama3::pickle {

std::string_view Machine::take(uint64_t count) {
  if (count > text_.size() - position_) {
    refuse(join(count, " more bytes"), join(text_.size() - position_, " before the end"));
  }
  const std::string_view part = text_.substr(position_, count);
  position_ += count;
  return part;
}

std::string_view Machine::take_line() {
  const size_t end = text_.substr(position_, kMaxName + 1).find('\n');
  if (end == std::string_view::npos) refuse(join("a line of at most ", kMaxName, " bytes"), "none");
  const std::string_view line = take(end);
  take(1);
  return line;
}

uint64_t Machine::take_number(int size) {
  const std::string_view digits = take(static_cast<uint64_t>(size));
  uint64_t value = 0;
  for (int i = size; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(digits[static_cast<size_t>(i)]);
  return value;
}

void Machine::push(Kind kind, uint64_t a, uint64_t b) {
  if (++pushed_ > kMaxValues) refuse(join("at most ", kMaxValues, " values"), "more");
  stack_.push_back({kind, a, b});
}

Value Machine::pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("an operand", "an empty stack");
  const Value value = stack_.back();
  stack_.pop_back();
  return value;
}

Value Machine::pop(Kind kind) {
  const Value value = pop();
  if (value.kind != kind) refuse(kind_name(kind), kind_name(value.kind));
  return value;
}

size_t Machine::pop_mark() {
  if (marks_.empty()) refuse("a mark", "none");
  const size_t height = marks_.back();
  marks_.pop_back();
  return height;
}

uint64_t Machine::natural(const Value& value, const char* what) const {
  if (value.kind != Kind::kInteger) refuse(join("an integer as ", what), kind_name(value.kind));
  const auto number = static_cast<int64_t>(value.a);
  if (number < 0) refuse(join(what, " of at least 0"), join(number));
  return value.a;
}

bool Machine::run_scalar(unsigned char opcode) {
  switch (opcode) {
    case 'N':
      push(Kind::kNone);
      return true;
    case 0x88:  // NEWTRUE
    case 0x89:  // NEWFALSE
      push(Kind::kBoolean, opcode == 0x88);
      return true;
    case 'K':  // BININT1
      push(Kind::kInteger, take_number(1));
      return true;
    case 'M':  // BININT2
      push(Kind::kInteger, take_number(2));
      return true;
    case 'J':  // BININT, signed
      push(Kind::kInteger, static_cast<uint64_t>(int64_t{static_cast<int32_t>(take_number(4))}));
      return true;
    case 0x8a:  // LONG1
      push_long();
      return true;
    case 'X':  // BINUNICODE
      push_text();
      return true;
    case 'c':  // GLOBAL
      push_global();
      return true;
    default:
      return false;
  }
}

bool Machine::run_container(unsigned char opcode) {
  switch (opcode) {
    case '}':  // EMPTY_DICT
      dicts_.emplace_back();
      push(Kind::kDict, dicts_.size() - 1);
      return true;
    case ')':  // EMPTY_TUPLE
      push_tuple(stack_.size());
      return true;
    case 't':  // TUPLE
      push_tuple(pop_mark());
      return true;
    case 0x85:  // TUPLE1..3
    case 0x86:
    case 0x87: {
      const size_t count = opcode - 0x84u;
      if (stack_.size() - (marks_.empty() ? 0 : marks_.back()) < count)
        refuse(join(count, " operands"), "fewer");
      push_tuple(stack_.size() - count);
      return true;
    }
    case 's':  // SETITEM
      if (stack_.size() - (marks_.empty() ? 0 : marks_.back()) < 3)
        refuse("a dict, a key and a value", "fewer operands");
      set_items(stack_.size() - 2);
      return true;
    case 'u':  // SETITEMS
      set_items(pop_mark());
      return true;
    default:
      return false;
  }
}

bool Machine::run_memo(unsigned char opcode) {
  switch (opcode) {
    case 'q':  // BINPUT
      put(take_number(1));
      return true;
    case 'r':  // LONG_BINPUT
      put(take_number(4));
      return true;
    case 'h':  // BINGET
      get(take_number(1));
      return true;
    case 'j':  // LONG_BINGET
      get(take_number(4));
      return true;
    default:
      return false;
  }
}

bool Machine::run_opcode(unsigned char opcode) {
  if (run_scalar(opcode) || run_container(opcode) || run_memo(opcode)) return true;
  switch (opcode) {
    case '(':  // MARK
      if (marks_.size() >= kMaxMarks) refuse(join("a nesting of at most ", kMaxMarks), "more");
      marks_.push_back(stack_.size());
      return true;
    case 'R':
      reduce();
      return true;
    case 'Q':  // BINPERSID
      push_storage();
      return true;
    case 'b':
      build();
      return true;
    case '.':  // STOP
      return false;
    default: {
      constexpr char kDigits[] = "0123456789abcdef";
      refuse("an opcode of a tensor state dict", join("0x", kDigits[opcode >> 4], kDigits[opcode & 15]));
    }
  }
}

void Machine::push_long() {
  const auto count = static_cast<int>(take_number(1));
  if (count > 8) refuse("an integer of at most 8 bytes", join(count));
  uint64_t value = take_number(count);
  if (count > 0 && count < 8 && (value >> (8 * count - 1) & 1) != 0) value |= ~uint64_t{0} << (8 * count);
  push(Kind::kInteger, value);
}

void Machine::push_text() {
  const uint64_t length = take_number(4);
  const uint64_t begin = position_;
  take(length);
  push(Kind::kText, begin, length);
}

void Machine::push_global() {
  const std::string_view module = take_line();
  const std::string_view name = take_line();
  for (size_t i = 0; i < kGlobals.size(); ++i) {
    if (kGlobals[i].module == module && kGlobals[i].name == name) return push(Kind::kGlobal, i);
  }
  refuse("a global of a tensor state dict", join("the global ", printable(module), ".", printable(name)));
}

void Machine::push_tuple(size_t first) {
  const uint64_t begin = tuple_items_.size();
  tuple_items_.insert(tuple_items_.end(), stack_.begin() + static_cast<ptrdiff_t>(first), stack_.end());
  const uint64_t count = stack_.size() - first;
  stack_.resize(first);
  push(Kind::kTuple, begin, count);
}

void Machine::put(uint64_t index) {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("a value to remember", "an empty stack");
  if (index >= kMaxValues) refuse(join("a memo index below ", kMaxValues), join(index));
  if (index >= memo_.size()) memo_.resize(index + 1);
  memo_[index] = stack_.back();
}

void Machine::get(uint64_t index) {
  if (index >= memo_.size() || memo_[index].kind == Kind::kUnset)
    refuse("a memo index that was set", join(index));
  const Value value = memo_[index];
  push(value.kind, value.a, value.b);
}

// Moves key, value, key, value, ... from `first` on into the dict below them.
void Machine::set_items(size_t first) {
  const size_t count = stack_.size() - first;
  if (count % 2 != 0) refuse("pairs of key and value", join(count, " operands"));
  if (first <= (marks_.empty() ? 0 : marks_.back())) refuse("a dict below the items", "an empty stack");
  const Value dict = stack_[first - 1];
  if (dict.kind != Kind::kDict && dict.kind != Kind::kOrderedDict) refuse("a dict", kind_name(dict.kind));
  for (size_t at = first; at < stack_.size(); at += 2) {
    if (stack_[at].kind != Kind::kText) refuse("text as a key", kind_name(stack_[at].kind));
    dicts_[dict.a].emplace_back(stack_[at], stack_[at + 1]);
  }
  stack_.resize(first);
}

}  // namespace drama3::pickle
