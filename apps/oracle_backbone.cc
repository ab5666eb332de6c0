// The backbone against the reference: activation quantisation, single layers, then whole sequences.
#include "apps/oracle_sequence.h"

namespace drama3 {
namespace {

constexpr const char* kFile = "backbone.safetensors";
constexpr const char* kGreedy = "greedy.safetensors";
constexpr const char* kRecorded = "reference.safetensors";

// One row as a tensor of rank 1.
FloatTensor vector_of(const FloatTensor& tensor, int64_t row) {
  return {Shape{tensor.cols()}, rows_of(tensor, row, 1).values};
}

void check_quantisation(Replay& replay, ReferenceFile& file) {
  if (!file.has("quant.x")) return;
  const FloatTensor x = file.floats("quant.x"), scale = file.floats("quant.scale");
  const IntTensor code = file.ints("quant.code");
  const Buffer in = uploaded(replay.ops, x, DType::kF32);
  const Buffer codes = replay.ops.allocate(DType::kF8E4M3, in.view.shape);
  const Buffer scales = replay.ops.allocate(DType::kF32, Shape{scale.rows(), scale.cols()});
  replay.ops.quantize_rows(codes.view, scales.view, in.view);
  std::vector<uint8_t> bytes(x.values.size());
  replay.ops.download(View(bytes.data(), DType::kF8E4M3, in.view.shape), codes.view);
  const FloatTensor our_scale = downloaded_floats(replay.ops, scales.view);
  replay.compare({.tensor = "backbone:quant.code", .subject = Subject::kQuantCode},
                 IntTensor{code.shape, {bytes.begin(), bytes.end()}}, code);
  replay.compare({.tensor = "backbone:quant.scale", .subject = Subject::kQuantScale}, our_scale, scale);
  replay.dump.add(kFile, "quant.x", x);
  replay.dump.add(kFile, "quant.scale", our_scale);
  replay.dump.add_bytes(kFile, "quant.code", {code.shape, {bytes.begin(), bytes.end()}});
}

// The reference's routing of every layer, or nothing when it holds none.
std::vector<IntTensor> reference_routing(const Replay& replay, ReferenceFile& file, const std::string& name) {
  std::vector<IntTensor> routing;
  for (size_t i = 0; i < replay.model.backbone.layers.size(); ++i) {
    const std::string tensor = join(name, ".routing.", i);
    if (!file.has(tensor)) return {};
    routing.push_back(file.ints(tensor));
  }
  return routing;
}

// Each layer fed the reference's input of it; with `forced`, its routing too.
void check_layers(Replay& replay, ReferenceFile& file, const std::string& name,
                  const BackboneForcing& forcing) {
  const bool quantized = forcing.quantize_activations, forced = !forcing.routing.empty();
  const std::string stem = name + (quantized ? ".layer_in." : ".noact_layer_in.");
  for (int i = 0; static_cast<size_t>(i) < replay.model.backbone.layers.size(); ++i) {
    const std::string in = join(stem, i), out = join(stem, i + 1);
    if (!file.has(in) || !file.has(out)) continue;
    const BackboneRun run = run_layer(replay, i, file.floats(in), forcing);
    const Subject subject = forced      ? Subject::kLayerForced
                            : quantized ? Subject::kLayer
                                        : Subject::kLayerNoact;
    const std::string routing = join(name, ".routing.", i);
    if (quantized && !forced && file.has(routing)) {
      replay.compare({.tensor = join("backbone:", routing, " (layer ", i, " fed ", in, ")"),
                      .subject = Subject::kRouting},
                     run.routing[static_cast<size_t>(i)], file.ints(routing));
    }
    replay.compare(
        {.tensor = join("backbone:", out, " (layer ", i, " fed ", in, forced ? ", routing forced)" : ")"),
         .subject = subject},
        run.hidden, file.floats(out));
  }
}

void keep(Replay& replay, const std::string& name, const BackboneRun& run, bool quantized) {
  if (!replay.dump.enabled()) return;
  const std::string stem = name + (quantized ? ".layer_in." : ".noact_layer_in.");
  for (size_t i = 0; i < run.layer_in.size(); ++i) {
    replay.dump.add(kFile, join(stem, i), run.layer_in[i]);
    if (quantized) replay.dump.add(kFile, join(name, ".routing.", i), run.routing[i]);
  }
  replay.dump.add(kFile, join(stem, run.layer_in.size()), run.hidden);
  replay.dump.add(kFile, name + (quantized ? ".hidden" : ".hidden_noact"), run.hidden);
}

// The last rows' logits of all cases stand in one comparison: their rows are judged together.
struct LastRows {
  FloatTensor got, want;
};

void check_sequence(Replay& replay, ReferenceFile& file, const std::string& name, LastRows& last) {
  IntTensor ids = file.ints(name + ".ids");
  replay.dump.add(kFile, name + ".ids", ids);
  const IntTensor no_frames{Shape{0, replay.model.config.tower.codebooks}, {}};
  const Rows rows = prompt_and_frames(ids.values, no_frames);
  std::vector<IntTensor> forced;
  if (replay.settings.force_routing) forced = reference_routing(replay, file, name);
  const std::string note = forced.empty() ? "" : " (routing forced)";
  if (!replay.half_activations() && file.has(name + ".hidden_noact")) {  // no bar for BF16 rows
    const BackboneRun run = run_backbone(replay, rows, {.quantize_activations = false, .routing = {}});
    replay.compare({.tensor = "backbone:" + name + ".hidden_noact", .subject = Subject::kHiddenNoact},
                   run.hidden, file.floats(name + ".hidden_noact"));
    keep(replay, name, run, false);
  }
  if (!replay.settings.quantize_activations || !file.has(name + ".hidden")) return;
  const BackboneRun run = run_backbone(replay, rows, {.quantize_activations = true, .routing = forced});
  replay.compare({.tensor = "backbone:" + name + ".hidden" + note, .subject = Subject::kHidden}, run.hidden,
                 file.floats(name + ".hidden"));
  keep(replay, name, run, true);
  if (!file.has(name + ".semantic_logits")) return;
  const FloatTensor logits = candidate_logits(replay, rows_of(run.hidden, rows.count() - 1, 1));
  FloatTensor want = file.floats(name + ".semantic_logits");
  want.shape = Shape{1, want.shape.elements()};
  replay.dump.add(kFile, name + ".semantic_logits", FloatTensor{Shape{want.cols()}, logits.values});
  append_rows(last.got, logits);
  append_rows(last.want, want);
}

void check_cases(Replay& replay, ReferenceFile& file) {
  check_quantisation(replay, file);
  const std::vector<std::string> cases = file.cases(".ids");
  const ReplaySettings& settings = replay.settings;
  for (const std::string& name : cases) {
    const std::vector<IntTensor> routing = reference_routing(replay, file, name);
    if (!replay.half_activations())
      check_layers(replay, file, name, {.quantize_activations = false, .routing = {}});
    if (!settings.quantize_activations) continue;
    if (!settings.force_routing) check_layers(replay, file, name, {});
    const bool force = settings.force_routing || replay.half_activations();
    if (force && !routing.empty()) {
      check_layers(replay, file, name, {.quantize_activations = true, .routing = routing});
    }
  }
  LastRows last;
  std::string names;
  for (const std::string& name : cases) {
    check_sequence(replay, file, name, last);
    names += (names.empty() ? "" : ",") + name;
  }
  if (last.want.values.empty()) return;
  replay.compare(
      {.tensor = "backbone:" + names + ".semantic_logits", .subject = Subject::kLogits, .logits = true},
      last.got, last.want);
  replay.compare_argmax("backbone:" + names + ".semantic_logits argmax", last.got, last.want);
}

void check_greedy(Replay& replay, const GreedyText& text) {
  ReferenceFile& file = *replay.reference.file(kGreedy);
  const std::string name = "greedy:" + text.name + ".";
  const FloatTensor hidden = run_backbone(replay, text.rows(), {}).hidden;
  const FloatTensor frames = rows_of(hidden, text.prompt() - 1, text.frames());
  if (file.has(text.name + ".prompt_hidden")) {
    replay.compare({.tensor = name + "prompt_hidden", .subject = Subject::kHidden},
                   rows_of(hidden, 0, text.prompt()), file.floats(text.name + ".prompt_hidden"));
  }
  const std::string frame = text.name + ".frame.";
  replay.compare({.tensor = name + "frame.*.hidden", .subject = Subject::kHidden}, frames,
                 file.stacked(frame, ".hidden"));
  const FloatTensor logits = candidate_logits(replay, frames), want = file.stacked(frame, ".semantic_logits");
  replay.compare({.tensor = name + "frame.*.semantic_logits", .subject = Subject::kLogits, .logits = true},
                 logits, want);
  replay.compare_argmax(name + "codes[0] (argmax)", logits, want);
  replay.dump.add(kGreedy, text.name + ".codes", transposed(text.codes));
  replay.dump.add(kGreedy, text.name + ".prompt_hidden", rows_of(hidden, 0, text.prompt()));
  for (int64_t f = 0; f < text.frames(); ++f) {
    replay.dump.add(kGreedy, join(frame, f, ".hidden"), vector_of(frames, f));
    replay.dump.add(kGreedy, join(frame, f, ".semantic_logits"), vector_of(logits, f));
  }
}

void check_recorded(Replay& replay) {
  ReferenceFile* file = replay.reference.file(kRecorded);
  if (file == nullptr) return replay.remarks.push_back("reference.safetensors is not in the reference");
  const RecordedPrompt prompt = recorded_prompt(replay);
  const FloatTensor hidden = run_backbone(replay, prompt.rows, {}).hidden;
  replay.compare({.tensor = "reference:hidden", .subject = Subject::kHidden}, hidden, file->floats("hidden"));
  const FloatTensor logits = candidate_logits(replay, rows_of(hidden, hidden.rows() - 1, 1));
  FloatTensor want = file->floats("semantic_logits");
  want.shape = Shape{1, want.shape.elements()};
  replay.compare({.tensor = "reference:semantic_logits", .subject = Subject::kLogits, .logits = true}, logits,
                 want);
  replay.compare_argmax("reference:frame[0] (argmax)", logits, want);
  for (const char* name : {"ids", "codes", "frame"}) replay.dump.add(kRecorded, name, file->ints(name));
  replay.dump.add(kRecorded, "hidden", hidden);
  replay.dump.add(kRecorded, "semantic_logits", vector_of(logits, 0));
}

}  // namespace

void replay_backbone(Replay& replay) {
  if (ReferenceFile* file = replay.reference.file(kFile)) {
    check_cases(replay, *file);
  } else {
    replay.remarks.push_back(join(kFile, " is not in the reference"));
  }
  if (!replay.settings.quantize_activations) {
    return replay.remarks.push_back("without activation quantisation only *_noact tensors are compared");
  }
  for (const GreedyText& text : greedy_texts(replay)) check_greedy(replay, text);
  check_recorded(replay);
}

}  // namespace drama3
