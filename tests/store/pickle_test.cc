// The pickle machine: a state dict in every accepted form, and one pickle for each rule it can break.
#include "lib/store/pickle.h"

#include "tests/store/made_files.h"

using namespace drama3;
using namespace drama3::testing;

namespace {

std::vector<PickledTensor> parsed(const std::string& content) {
  return parse_state_dict("f.pth", bytes_of(content));
}

std::string refusal(const std::string& content) {
  return error_of([&] { parsed(content); });
}

const std::string kTensor = op::tensor(op::storage("0", 6), 0, {2, 3}, {3, 1});

// A whole pickle of a dict with one member "t".
std::string one(const std::string& value_ops) {
  return op::kProto + op::dict(op::text("t") + value_ops) + ".";
}

std::string one_tensor(int64_t elements, int64_t offset, const std::vector<int64_t>& sizes,
                       const std::vector<int64_t>& strides) {
  return one(op::tensor(op::storage("0", elements), offset, sizes, strides));
}

}  // namespace

TEST_CASE("a dict of tensors, in place of which an OrderedDict or a wrapped dict may stand") {
  const std::vector<std::string> forms = {
      one(kTensor),
      op::kProto + op::kOrderedDict + "(" + op::text("t") + kTensor + "u.",
      op::kProto + "}" + op::text("t") + kTensor + "s.",
      op::kProto + op::dict(op::text("state_dict") + op::dict(op::text("t") + kTensor)) + ".",
      // OrderedDict with _metadata by BUILD
      op::kProto + op::kOrderedDict + op::text("t") + kTensor + "s" +
          op::dict(op::text("_metadata") + op::kOrderedDict + op::text("") +
                   op::dict(op::text("version") + "K\x01") + "s") +
          "b.",
  };
  for (const std::string& form : forms) {
    const std::vector<PickledTensor> tensors = parsed(form);
    REQUIRE(tensors.size() == 1);
    CHECK(tensors[0].name == "t");
    CHECK(tensors[0].storage == "0");
    CHECK(tensors[0].storage_elements == 6);
    CHECK(tensors[0].shape == Shape{2, 3});
    CHECK(tensors[0].strides == Shape{3, 1});
    CHECK(tensors[0].type == DType::kF32);
  }
  CHECK(parsed(op::kProto + "}.").empty());
}

TEST_CASE("integers of every opcode, the memo, and each storage class") {
  const std::string storage =
      op::tuple(op::text("storage") + op::global("torch", "HalfStorage") + op::text("k") + "q\x05" +
                op::text("cpu") + std::string("M\x00\x01", 3)) +
      "Q";
  const std::string content =
      op::kProto + "}" + op::text("a") + op::global("torch._utils", "_rebuild_tensor_v2") + "(" + storage +
      "J" + little(2, 4) + "K\x04\x85" + "K\x02\x85" + "\x89" + op::kOrderedDict + "r" + little(300, 4) +
      "tRs" + op::text("b") + op::global("torch._utils", "_rebuild_tensor_v2") + "(" +
      op::storage("1", 3, "BoolStorage") + "\x8a" + std::string(1, '\0') + "K\x01K\x03\x86" +
      "K\x03K\x01\x86" + "\x88j" + little(300, 4) + "tRs.";
  const std::vector<PickledTensor> tensors = parsed(content);
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].type == DType::kF16);
  CHECK(tensors[0].storage_elements == 256);
  CHECK(tensors[0].offset == 2);
  CHECK(tensors[0].strides == Shape{2});
  CHECK(tensors[1].type == DType::kBool);
  CHECK(tensors[1].shape == Shape{1, 3});
}

TEST_CASE("other protocols, opcodes and globals are refused by name") {
  CHECK(has(refusal(""), "expected 2 more bytes, got 0"));
  CHECK(has(refusal("\x80\x04}."), "expected a pickle of protocol 2"));
  CHECK(has(refusal("}."), "expected a pickle of protocol 2"));
  CHECK(has(refusal(op::kProto + "]."), "byte 2: expected an opcode of a tensor state dict, got 0x5d"));
  for (int code = 0; code < 256; ++code) {
    const std::string known = "N\x88\x89KMJ\x8aXc})t\x85\x86\x87suqrhj(RQb.";
    if (known.find(static_cast<char>(code)) != std::string::npos) continue;
    CHECK(has(refusal(op::kProto + static_cast<char>(code) + std::string(20, '\0')),
              "an opcode of a tensor state dict, got 0x"));
  }
  CHECK(has(refusal(one(op::global("os", "system") + op::tuple(op::text("true")) + "R")),
            "got the global os.system"));
  CHECK(has(refusal(one(op::global("torch", "DoubleStorage"))), "got the global torch.DoubleStorage"));
  CHECK(has(refusal(one(op::global("builtins", "eval"))), "got the global builtins.eval"));
  CHECK(has(refusal(op::kProto + "c" + std::string(300, 'm')), "expected a line of at most 255 bytes"));
}

TEST_CASE("operands: their number and their type") {
  CHECK(has(refusal(op::kProto + "R"), "expected an operand, got an empty stack"));
  CHECK(has(refusal(op::kProto + "}(R"), "expected an operand, got an empty stack"));  // not below the mark
  CHECK(has(refusal(one(op::text("x") + ")R")), "expected a global, got text"));
  CHECK(has(refusal(one("ccollections\nOrderedDict\nNR")), "expected a tuple, got None"));
  CHECK(has(refusal(one("ccollections\nOrderedDict\n" + op::tuple("N") + "R")),
            "expected OrderedDict without arguments, got 1"));
  CHECK(has(refusal(one("ctorch\nFloatStorage\n)R")), "to be called, got torch.FloatStorage"));
  CHECK(has(refusal(op::kProto + "N" + op::text("k") + "Ns."), "expected a dict, got None"));
  CHECK(has(refusal(op::kProto + ")(" + op::text("k") + "Nu."), "expected a dict, got a tuple"));
  CHECK(has(refusal(op::kProto + "}Ns."), "expected a dict, a key and a value"));
  CHECK(has(refusal(op::kProto + "}(" + op::text("k") + "u."),
            "expected pairs of key and value, got 1 operands"));
  CHECK(has(refusal(op::kProto + "(" + op::text("k") + "Nu."), "expected a dict below the items"));
  CHECK(has(refusal(op::kProto + "}K\x01Ns."), "expected text as a key, got an integer"));
  CHECK(has(refusal(op::kProto + "}u."), "expected a mark, got none"));
  CHECK(has(refusal(op::kProto + "t."), "expected a mark, got none"));
  CHECK(has(refusal(op::kProto + "N\x86."), "expected 2 operands, got fewer"));
  CHECK(has(refusal(one("}b")), "expected an OrderedDict, got text"));
  CHECK(has(refusal(one("}}b")), "expected an OrderedDict, got a dict"));
  CHECK(has(refusal(one(op::kOrderedDict + "Nb")), "expected a dict, got None"));
  CHECK(has(refusal(op::kProto + std::string("\x8a\x09", 2) + std::string(9, '\0')),
            "expected an integer of at most 8 bytes, got 9"));
  CHECK(has(refusal(op::kProto + "X" + little(~0u, 4) + "abc"), "expected 4294967295 more bytes, got 3"));
}

TEST_CASE("memo indexes") {
  CHECK(has(refusal(op::kProto + "h\x01"), "expected a memo index that was set, got 1"));
  CHECK(has(refusal(op::kProto + "Nq\x05h\x04"), "expected a memo index that was set, got 4"));
  CHECK(
      has(refusal(op::kProto + "j" + little(~0u, 4)), "expected a memo index that was set, got 4294967295"));
  CHECK(
      has(refusal(op::kProto + "Nr" + little(~0u, 4)), "expected a memo index below 262144, got 4294967295"));
  CHECK(has(refusal(op::kProto + "q\x01"), "expected a value to remember, got an empty stack"));
}

TEST_CASE("storages and tensors are built from the right parts only") {
  const auto storage_id = [](const std::string& items) { return one(op::tuple(items) + "Q"); };
  const std::string fit =
      op::text("storage") + op::global("torch", "FloatStorage") + op::text("0") + op::text("cpu");
  CHECK(has(refusal(one("NQ")), "expected a tuple, got None"));
  CHECK(has(refusal(storage_id(fit)), "got another persistent id"));
  CHECK(has(refusal(storage_id(op::text("module") + op::global("torch", "FloatStorage") + op::text("0") +
                               op::text("cpu") + "K\x01")),
            "got another persistent id"));
  CHECK(has(refusal(storage_id(op::text("storage") + op::global("collections", "OrderedDict") +
                               op::text("0") + op::text("cpu") + "K\x01")),
            "got another persistent id"));
  CHECK(has(refusal(storage_id(fit + op::integer(-1))), "expected a storage's length of at least 0, got -1"));
  CHECK(has(refusal(storage_id(fit + "N")), "expected an integer as a storage's length, got None"));

  const std::string rebuild = op::global("torch._utils", "_rebuild_tensor_v2");
  const std::string storage = op::storage("0", 6);
  const std::string rest = op::integers({2, 3}) + op::integers({3, 1});
  CHECK(has(refusal(one(rebuild + op::tuple(storage + "K" + std::string(1, '\0') + rest + "\x89") + "R")),
            "expected six arguments of _rebuild_tensor_v2, got 5"));
  CHECK(has(refusal(one(rebuild + op::tuple("N" + op::integer(0) + rest + "\x89" + op::kOrderedDict) + "R")),
            "expected a storage as first argument, got None"));
  CHECK(has(refusal(one(rebuild + op::tuple(storage + op::integer(0) + rest + "N" + op::kOrderedDict) + "R")),
            "expected a boolean as requires_grad, got None"));
  CHECK(has(refusal(one(rebuild + op::tuple(storage + op::integer(0) + rest + "\x89N") + "R")),
            "expected an empty OrderedDict of hooks, got None"));
  CHECK(has(
      refusal(one(rebuild +
                  op::tuple(storage + op::integer(0) + "N" + op::integers({1}) + "\x89" + op::kOrderedDict) +
                  "R")),
      "integers as sizes, got None"));
}

TEST_CASE("tensors lie within their storage, by arithmetic that cannot wrap") {
  CHECK(refusal(one_tensor(6, 0, {2, 3}, {3, 1})) == "");
  CHECK(refusal(one_tensor(6, 0, {3, 2}, {1, 3})) == "");
  CHECK(refusal(one_tensor(6, 5, {1}, {1})) == "");
  CHECK(refusal(one_tensor(6, 5, {}, {})) == "");
  CHECK(refusal(one_tensor(6, 6, {0, 3}, {3, 1})) == "");
  for (const std::string& content : {
           one_tensor(5, 0, {2, 3}, {3, 1}),
           one_tensor(6, 1, {2, 3}, {3, 1}),
           one_tensor(6, 6, {1}, {1}),
           one_tensor(6, 0, {3}, {3}),
           one_tensor(6, 7, {0}, {1}),
           one_tensor(6, INT64_MAX, {2}, {INT64_MAX}),
           one_tensor(6, 0, {INT64_MAX, INT64_MAX}, {1, 1}),  // wraps
           one_tensor(6, 0, {INT64_MAX}, {0}),                // a huge expanded tensor
           one_tensor(0, 0, {1}, {1}),
       }) {
    CHECK(has(refusal(content), "elements of its storage, got offset "));
  }
  CHECK(has(refusal(one_tensor(6, -1, {1}, {1})), "expected a storage offset of at least 0, got -1"));
  CHECK(has(refusal(one_tensor(6, 0, {-1}, {1})), "expected sizes of at least 0, got -1"));
  CHECK(has(refusal(one_tensor(6, 5, {2}, {-1})), "expected strides of at least 0, got -1"));
  CHECK(has(refusal(one_tensor(6, 0, {2, 3}, {1})), "expected 2 strides, got 1"));
  CHECK(has(refusal(one_tensor(6, 0, std::vector<int64_t>(9, 1), std::vector<int64_t>(9, 1))),
            "expected a tuple of at most 8 integers as sizes"));
}

TEST_CASE("what comes out is a dict of named tensors and nothing follows it") {
  CHECK(has(refusal(one("N")), "pickle: t: expected a tensor, got None"));
  CHECK(has(refusal(op::kProto + "N."), "expected a dict of tensors, got None"));
  CHECK(has(refusal(op::kProto + "."), "expected one value at STOP, got 0"));
  CHECK(has(refusal(op::kProto + "}}."), "expected one value at STOP, got 2"));
  CHECK(has(refusal(op::kProto + "}(."), "expected one value at STOP"));
  CHECK(has(refusal(op::kProto + "}"), "expected 1 more bytes, got 0 before the end"));
  CHECK(has(refusal(op::kProto + "}.N"), "expected nothing after STOP, got 1 bytes"));
  CHECK(has(refusal(op::kProto + op::dict(op::text("a\nb") + kTensor) + "."),
            "printable ASCII characters, got \"a?b\""));
  CHECK(has(refusal(op::kProto + op::dict(op::text("") + kTensor) + "."), "a tensor's name of 1 to 255"));
  CHECK(has(refusal(one(op::tensor(op::storage("../0 ", 6), 0, {6}, {1}))), "a storage's key of 1 to 255"));
  CHECK(has(refusal(op::kProto +
                    op::dict(op::text("state_dict") + op::dict("") + op::text("epoch") + "K\x01") + "."),
            "state_dict: expected a tensor, got a dict"));
}

TEST_CASE("nesting and numbers of values are bounded") {
  CHECK(has(refusal(op::kProto + std::string(65, '(')), "expected a nesting of at most 64"));
  CHECK(has(refusal(op::kProto + std::string(300000, 'N')), "expected at most 262144 values"));
  CHECK(has(refusal(op::kProto + std::string(300000, '}')), "expected at most 262144 values"));
  CHECK(has(refusal(op::kProto + ")" + std::string(300000, '\x85')), "expected at most 262144 values"));
  CHECK(has(refusal(op::kProto + std::string(17 << 20, '}')), "expected at most 16777216 bytes"));
  // A dict that holds itself ends as a dict whose member is no tensor.
  CHECK(has(refusal(op::kProto + "}q\x01" + op::text("t") + "h\x01s."), "expected a tensor, got a dict"));
}
