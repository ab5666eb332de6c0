// Tokenizer and prompts against the reference's ids.
#include "apps/oracle_replay.h"
#include "lib/text/prompt.h"

namespace drama3 {
namespace {

// Counts lists of ids that differ, and names the first.
class IdLists {
 public:
  void check(const std::vector<int32_t>& got, const std::vector<int32_t>& want, std::string_view text) {
    const bool same = got == want;
    if (!same && remark_.empty()) {
      remark_ =
          join("first differs: '", text.substr(0, 30), "', expected ", want.size(), " ids, got ", got.size());
    }
    got_.values.push_back(same ? 0 : 1);
    want_.values.push_back(0);
  }
  void report(Replay& replay, const std::string& tensor) {
    got_.shape = want_.shape = Shape{static_cast<int64_t>(want_.values.size())};
    replay.compare({.tensor = tensor, .subject = Subject::kIds, .remark = remark_}, got_, want_);
  }

 private:
  IntTensor got_, want_;
  std::string remark_;
};

void check_strings(Replay& replay) {
  const JsonDocument* document = replay.reference.json("tokenizer.json");
  if (document == nullptr) return replay.remarks.push_back("tokenizer.json is not in the reference");
  IdLists lists;
  for (const JsonValue entry : document->root().elements()) {
    const std::string_view text = entry.at("text").as_text();
    lists.check(replay.model.tokenizer.encode(text), ids_in(entry.at("ids")), text);
  }
  lists.report(replay, "tokenizer.json: ids of the strings");
}

void check_prompts(Replay& replay) {
  const JsonDocument* document = replay.reference.json("greedy.json");
  if (document == nullptr) return replay.remarks.push_back("greedy.json is not in the reference");
  IdLists encoded, built;
  for (const JsonValue entry : document->root().elements()) {
    const std::vector<int32_t> ids = ids_in(entry.at("ids"));
    const std::string_view text = entry.at("text").as_text();
    encoded.check(replay.model.tokenizer.encode(entry.at("prompt").as_text()), ids, text);
    built.check(build_prompt(replay.model.tokenizer, text), ids, text);
  }
  encoded.report(replay, "greedy.json: ids of the prompts");
  built.report(replay, "greedy.json: prompts from the texts");
}

void check_reference_prompt(Replay& replay) {
  const JsonDocument* document = replay.reference.json("reference.json");
  ReferenceFile* file = replay.reference.file("reference.safetensors");
  if (document == nullptr || file == nullptr) {
    return replay.remarks.push_back("reference.json or reference.safetensors is not in the reference");
  }
  const JsonValue root = document->root();
  const PromptReference recorded{std::string(root.at("transcript").as_text()), file->ints("codes").cols()};
  IdLists built;
  const std::string_view text = root.at("text").as_text();
  built.check(build_prompt(replay.model.tokenizer, text, {&recorded, 1}), file->ints("ids").values, text);
  built.report(replay, "reference.json: prompt with reference frames");
}

}  // namespace

void replay_tokenizer(Replay& replay) {
  check_strings(replay);
  check_prompts(replay);
  check_reference_prompt(replay);
}

}  // namespace drama3
