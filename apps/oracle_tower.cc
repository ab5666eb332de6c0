// The tower against the reference: stages fed its hidden rows, then logits from ids, draws, and a prompt with
// frames.
#include "apps/oracle_sequence.h"

namespace drama3 {
namespace {

constexpr const char* kGreedy = "greedy.safetensors";
constexpr const char* kRecorded = "reference.safetensors";

// [frames * residual layers, entries]: the logits of rows first.. in frame order, as they stand in the files.
FloatTensor frame_logits(const TowerStages& stages, int64_t first, int64_t frames) {
  FloatTensor all;
  for (int64_t f = 0; f < frames; ++f) {
    for (int k = 0; stages.count(join("logits.", k)) > 0; ++k) {
      append_rows(all, rows_of(stages.at(join("logits.", k)), first + f, 1));
    }
  }
  return all;
}

// The first rows of the text's sequence as the reference has them after the final norm.
FloatTensor reference_hidden(ReferenceFile& file, const GreedyText& text, int64_t frames) {
  FloatTensor hidden = file.floats(text.name + ".prompt_hidden");
  for (int64_t f = 1; f < frames; ++f) {
    FloatTensor row = file.floats(join(text.name, ".frame.", f, ".hidden"));
    row.shape = Shape{1, row.shape.elements()};
    append_rows(hidden, row);
  }
  return hidden;
}

// Every stage "<text>.tower.<frame>.<stage>" of the reference, in the order of the graph.
void check_stages(Replay& replay, ReferenceFile& file, const GreedyText& text, const TowerStages& stages) {
  for (int64_t f = 0; f < text.frames(); ++f) {
    const std::string stem = join(text.name, ".tower.", f, ".");
    for (const std::string part : {"shared.", "residual.", "logits."}) {
      for (int i = 0; file.has(join(stem, part, i)); ++i) {
        const std::string stage = join(part, i);
        const auto at = stages.find(stage);
        const FloatTensor want = file.floats(stem + stage);
        const FloatTensor got = at == stages.end()
                                    ? FloatTensor{}
                                    : rows_of(at->second, 0, std::min(want.rows(), at->second.rows()));
        replay.compare({.tensor = "greedy:" + stem + stage,
                        .subject = Subject::kTowerStage,
                        .logits = part == "logits."},
                       got, want);
      }
    }
  }
}

// Frame 0's stages and every frame's logits.
void keep(Replay& replay, const GreedyText& text, const TowerStages& stages, const FloatTensor& logits) {
  if (!replay.dump.enabled()) return;
  for (const auto& [stage, rows] : stages) {
    replay.dump.add(kGreedy, text.name + ".tower.0." + stage, rows_of(rows, 0, text.prompt()));
  }
  const int64_t heads = logits.rows() / text.frames();
  for (int64_t f = 0; f < text.frames(); ++f) {
    replay.dump.add(kGreedy, join(text.name, ".frame.", f, ".logits"), rows_of(logits, f * heads, heads));
  }
}

void check_greedy(Replay& replay, const GreedyText& text) {
  ReferenceFile& file = *replay.reference.file(kGreedy);
  const std::string name = "greedy:" + text.name + ".frame.*.logits";
  const FloatTensor want = file.stacked(text.name + ".frame.", ".logits");
  if (file.has(text.name + ".prompt_hidden")) {
    const TowerStages stages = run_tower(replay, reference_hidden(file, text, text.frames()), text.next());
    check_stages(replay, file, text, stages);
    replay.compare({.tensor = name + " (reference hidden)", .subject = Subject::kTowerStage, .logits = true},
                   frame_logits(stages, text.prompt() - 1, text.frames()), want);
  }
  if (!replay.settings.quantize_activations) return;
  const FloatTensor hidden = run_backbone(replay, text.rows(), {}).hidden;
  const TowerStages stages = run_tower(replay, hidden, text.next());
  const FloatTensor logits = frame_logits(stages, text.prompt() - 1, text.frames());
  keep(replay, text, stages, logits);
  replay.compare({.tensor = name + " (from ids)", .subject = Subject::kLogits, .logits = true}, logits, want);
  replay.compare_argmax("greedy:" + text.name + ".codes[1..] (argmax)", logits, want);
}

// logits [residual layers, rows, entries] of the file.
void check_recorded(Replay& replay) {
  ReferenceFile* file = replay.reference.file(kRecorded);
  if (file == nullptr) return replay.remarks.push_back("reference.safetensors is not in the reference");
  const RecordedPrompt prompt = recorded_prompt(replay);
  const FloatTensor all = file->floats("logits"), hidden = file->floats("hidden");
  const TowerStages stages = run_tower(replay, hidden, prompt.next);
  const int64_t rows = prompt.rows.count();
  FloatTensor last_want;
  for (int64_t k = 0; k < all.rows() / rows; ++k) {
    const std::string stage = join("logits.", k);
    const FloatTensor want = rows_of(all, k * rows, rows);
    const auto at = stages.find(stage);
    replay.compare({.tensor = join("reference:logits[", k, "] (reference hidden)"),
                    .subject = Subject::kTowerStage,
                    .logits = true},
                   at == stages.end() ? FloatTensor{} : at->second, want);
    append_rows(last_want, rows_of(want, rows - 1, 1));
  }
  if (!replay.settings.quantize_activations) return;
  const FloatTensor ours = run_backbone(replay, prompt.rows, {}).hidden;
  const TowerStages from_ids = run_tower(replay, ours, prompt.next);
  const FloatTensor last = frame_logits(from_ids, rows - 1, 1);
  FloatTensor kept;
  for (int64_t k = 0; k < last.rows(); ++k) append_rows(kept, from_ids.at(join("logits.", k)));
  kept.shape = Shape{last.rows(), rows, last.cols()};
  replay.dump.add(kRecorded, "logits", std::move(kept));
  replay.compare(
      {.tensor = "reference:logits of the last row (from ids)", .subject = Subject::kLogits, .logits = true},
      last, last_want);
  replay.compare_argmax("reference:frame[1..] (argmax)", last, last_want);
}

}  // namespace

void replay_tower(Replay& replay) {
  for (const GreedyText& text : greedy_texts(replay)) check_greedy(replay, text);
  check_recorded(replay);
}

}  // namespace drama3
