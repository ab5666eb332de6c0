// Runs of backbone and tower over whole sequences, with all their rows on the host afterwards.
#include "apps/oracle_sequence.h"

#include "lib/base/error.h"
#include "lib/tower/tower.h"

namespace drama3 {
namespace {

// Rows [begin, begin + count) of frames.
IntTensor frame_rows(const IntTensor& frames, int64_t begin, int64_t count) {
  const auto first = frames.values.begin() + begin * frames.cols();
  return {Shape{count, frames.cols()}, {first, first + count * frames.cols()}};
}

// Forced routing in the backend's memory, and the probe that watches a run.
class Watch {
 public:
  Watch(const Replay& replay, const BackboneForcing& forcing, BackboneRun& run) {
    for (const IntTensor& layer : forcing.routing) {
      buffers_.push_back(uploaded(replay.ops, layer));
      forced_.push_back(buffers_.back().view);
    }
    Ops& ops = replay.ops;
    run.layer_in.resize(replay.model.config.backbone.layers.size());
    run.routing.resize(run.layer_in.size());
    probe_ = {.layer_in =
                  [&ops, &run](int layer, const View& x) {
                    append_rows(run.layer_in[static_cast<size_t>(layer)], downloaded_floats(ops, x));
                  },
              .routing =
                  [&ops, &run](int layer, const Routing& routing) {
                    append_rows(run.routing[static_cast<size_t>(layer)],
                                downloaded_ints(ops, routing.indices));
                  },
              .quantize_activations = forcing.quantize_activations,
              .forced_routing = forced_};
  }
  const backbone::Probe& probe() const { return probe_; }

 private:
  std::vector<Buffer> buffers_;
  std::vector<View> forced_;
  backbone::Probe probe_;
};

}  // namespace

void Rows::add_text(int32_t id, int64_t codebooks) {
  ids.values.push_back(id);
  ids.shape = Shape{1, count()};
  codes.values.insert(codes.values.end(), static_cast<size_t>(codebooks), 0);
  codes.shape = Shape{count(), codebooks};
}

void Rows::add_frame(const IntTensor& frames, int64_t frame) {
  add_text(-1, 0);
  const auto first = frames.values.begin() + frame * frames.cols();
  codes.values.insert(codes.values.end(), first, first + frames.cols());
  codes.shape = Shape{count(), frames.cols()};
}

Rows prompt_and_frames(const std::vector<int32_t>& ids, const IntTensor& frames) {
  Rows rows;
  for (const int32_t id : ids) rows.add_text(id, frames.cols());
  for (int64_t f = 0; f < frames.rows(); ++f) rows.add_frame(frames, f);
  return rows;
}

Rows mixed_rows(const std::vector<int32_t>& ids, const IntTensor& frames) {
  Rows rows;
  int64_t frame = 0;
  for (const int32_t id : ids) {
    if (id >= 0) {
      rows.add_text(id, frames.cols());
    } else {
      if (frame == frames.rows())
        fail("reference.safetensors: ids: expected ", frame, " audio rows, got more");
      rows.add_frame(frames, frame++);
    }
  }
  return rows;
}

Rows followers(const Rows& rows, const IntTensor& last) {
  Rows next;
  for (int64_t r = 1; r < rows.count(); ++r) {
    const int32_t id = rows.ids.values[static_cast<size_t>(r)];
    if (id >= 0) {
      next.add_text(id, rows.codes.cols());
    } else {
      next.add_frame(rows.codes, r);
    }
  }
  next.add_frame(last, 0);
  return next;
}

BackboneRun run_backbone(const Replay& replay, const Rows& rows, const BackboneForcing& forcing) {
  BackboneRun run;
  const Watch watch(replay, forcing, run);
  Workspace workspace(replay.ops);
  backbone::Backbone backbone(workspace, replay.model.config.backbone, replay.model.backbone,
                              replay.model.tables, rows.count());
  const Buffer ids = uploaded(replay.ops, rows.ids), codes = uploaded(replay.ops, rows.codes);
  const View hidden =
      workspace.take(replay.ops.activation_type(), Shape{rows.count(), replay.model.config.backbone.hidden});
  backbone.reset();
  backbone.run(hidden, {ids.view, codes.view}, watch.probe());
  run.hidden = downloaded_floats(replay.ops, hidden);
  return run;
}

BackboneRun run_layer(const Replay& replay, int layer, const FloatTensor& x, const BackboneForcing& forcing) {
  BackboneRun run;
  const Watch watch(replay, forcing, run);
  Workspace workspace(replay.ops);
  backbone::Backbone backbone(workspace, replay.model.config.backbone, replay.model.backbone,
                              replay.model.tables, x.rows());
  const Buffer rows = uploaded(replay.ops, x, replay.ops.activation_type());
  backbone.run_layer(layer, rows.view, watch.probe());
  if (static_cast<size_t>(layer) + 1 == replay.model.backbone.layers.size()) {
    const View out = workspace.take(replay.ops.activation_type(), rows.view.shape);
    backbone.final_norm(out, rows.view);
    run.hidden = downloaded_floats(replay.ops, out);
  } else {
    run.hidden = downloaded_floats(replay.ops, rows.view);
  }
  return run;
}

FloatTensor candidate_logits(const Replay& replay, const FloatTensor& hidden) {
  const Linear& head = replay.model.backbone.head;
  const Buffer rows = uploaded(replay.ops, hidden, replay.ops.activation_type());
  const Buffer out = replay.ops.allocate(DType::kF32, Shape{1, head.out});
  FloatTensor logits;
  for (int64_t r = 0; r < hidden.rows(); ++r) {
    replay.ops.linear(out.view, rows.view.rows_from(r, 1), head);
    append_rows(logits, downloaded_floats(replay.ops, out.view));
  }
  return logits;
}

TowerStages run_tower(const Replay& replay, const FloatTensor& hidden, const Rows& next) {
  Ops& ops = replay.ops;
  TowerStages stages;
  Workspace workspace(ops);
  tower::Tower tower(workspace, replay.model.config.tower, replay.model.tower, replay.model.tables,
                     hidden.rows());
  const Buffer rows = uploaded(ops, hidden, ops.activation_type());
  const Buffer ids = uploaded(ops, next.ids), codes = uploaded(ops, next.codes);
  const auto observe = [&](const std::string& stage, const View& x) {
    append_rows(stages[stage], downloaded_floats(ops, x));
    const std::string residual = "residual.";
    if (!stage.starts_with(residual)) return;
    const std::string index = stage.substr(residual.size());
    const Linear& head = replay.model.tower.heads[std::stoul(index)];
    const Buffer logits = ops.allocate(DType::kF32, Shape{x.rows(), head.out});
    ops.linear(logits.view, x, head);
    append_rows(stages["logits." + index], downloaded_floats(ops, logits.view));
  };
  tower.reset();
  tower.append(rows.view, {ids.view, codes.view}, observe);
  return stages;
}

Rows GreedyText::rows() const { return prompt_and_frames(ids, frame_rows(codes, 0, frames() - 1)); }

Rows GreedyText::next() const { return followers(rows(), frame_rows(codes, frames() - 1, 1)); }

std::vector<GreedyText> greedy_texts(Replay& replay) {
  ReferenceFile* file = replay.reference.file("greedy.safetensors");
  const JsonDocument* document = replay.reference.json("greedy.json");
  std::vector<GreedyText> texts;
  if (file == nullptr || document == nullptr) {
    replay.remarks.push_back("greedy.safetensors or greedy.json is not in the reference");
    return texts;
  }
  for (const JsonValue entry : document->root().elements()) {
    const std::string name = std::to_string(texts.size());
    texts.push_back({name, ids_in(entry.at("ids")), transposed(file->ints(name + ".codes"))});
    const IntTensor& codes = texts.back().codes;
    if (codes.rows() == 0 || codes.cols() != replay.model.config.tower.codebooks ||
        texts.back().ids.empty()) {
      fail("greedy.safetensors: tensor ", name, ".codes: expected ", replay.model.config.tower.codebooks,
           " codebooks of at least one frame, got ", codes.cols(), " of ", codes.rows());
    }
  }
  return texts;
}

RecordedPrompt recorded_prompt(Replay& replay) {
  ReferenceFile& file = *replay.reference.file("reference.safetensors");
  RecordedPrompt prompt;
  const IntTensor codes = transposed(file.ints("codes"));
  prompt.rows = mixed_rows(file.ints("ids").values, codes);
  prompt.frame = file.ints("frame");
  prompt.frame.shape = Shape{1, static_cast<int64_t>(prompt.frame.values.size())};
  if (codes.cols() != replay.model.config.tower.codebooks || prompt.frame.cols() != codes.cols()) {
    fail("reference.safetensors: tensor codes: expected ", replay.model.config.tower.codebooks,
         " codebooks, got ", codes.cols());
  }
  prompt.next = followers(prompt.rows, prompt.frame);
  return prompt;
}

}  // namespace drama3
