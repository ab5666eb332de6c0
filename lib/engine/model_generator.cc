// Prompt rows in batches, then one row a frame; the codes of a frame never leave the backend before it is
// whole.
#include "lib/engine/model_generator.h"

#include <algorithm>
#include <vector>

#include "lib/base/error.h"
#include "lib/engine/stage_timer.h"
#include "lib/text/limits.h"

namespace drama3 {
namespace {

// Steps that a device may record.
constexpr int kDrawStep = 0;
constexpr int kAppendStep = 1;

View host_ints(const int32_t* values, int64_t rows, int64_t cols) {
  return View(const_cast<int32_t*>(values), DType::kI32, Shape{rows, cols});
}

}  // namespace

ModelGenerator::ModelGenerator(Ops& ops, const GeneratorModel& model, int64_t capacity)
    : ops_(ops),
      config_(model.tower_config),
      semantic_count_(model.backbone_config.semantic_count),
      capacity_(capacity),
      workspace_(ops),
      backbone_(workspace_, model.backbone_config, model.backbone, model.tables, capacity),
      tower_(workspace_, model.tower_config, model.tower, model.tables, capacity) {
  const int64_t rows = ops.max_rows();
  const int64_t hidden = model.backbone_config.hidden;
  ids_ = workspace_.take(DType::kI32, Shape{1, rows});
  next_ids_ = workspace_.take(DType::kI32, Shape{1, rows});
  row_codes_ = workspace_.take(DType::kI32, Shape{rows, config_.codebooks});
  next_codes_ = workspace_.take(DType::kI32, Shape{rows, config_.codebooks});
  hidden_ = workspace_.take(ops.activation_type(), Shape{rows, hidden});
  last_ = workspace_.take(ops.activation_type(), Shape{1, hidden});
  logits_ = workspace_.take(DType::kF32, Shape{1, semantic_count_ + 1});
  frame_id_ = workspace_.take(DType::kI32, Shape{1, 1});
  drawn_ = workspace_.take(DType::kI32, Shape{1, config_.codebooks + 1});
  codes_ = drawn_.cols_from(0, config_.codebooks);
  received_.resize(static_cast<size_t>(config_.codebooks) + 1);
  pick_ = {.sampling = workspace_.take(DType::kU8, Shape{static_cast<int64_t>(sizeof(Sampling))}),
           .frame = workspace_.take(DType::kI32, Shape{1}),
           .failure = drawn_.cols_from(config_.codebooks, 1)};
  const int32_t audio_row = -1;
  ops.upload(frame_id_, host_ints(&audio_row, 1, 1));
  draw_step_ = [this] { draw_frame(); };
  append_step_ = [this] { append_frame(); };
}

void ModelGenerator::start(const PromptRows& prompt, const Sampling& sampling, int64_t max_frames) {
  const auto rows = static_cast<int64_t>(prompt.ids.size());
  INVARIANT(rows > 0, "an empty prompt");
  check_rows_fit(rows, max_frames, capacity_);
  seconds_ = {};
  frames_ = enqueued_ = 0;
  max_frames_ = max_frames;
  backbone_.reset();
  tower_.reset();
  ops_.fill(pick_.frame, 0);
  ops_.fill(drawn_, 0);
  Sampling settings = sampling;
  ops_.upload(pick_.sampling, View(&settings, DType::kU8, Shape{static_cast<int64_t>(sizeof settings)}));
  const StageTimer timer(seconds_.prompt);
  prompt_rows(prompt);
  ops_.synchronize();
}

void ModelGenerator::prompt_rows(const PromptRows& prompt) {
  const auto total = static_cast<int64_t>(prompt.ids.size());
  const int64_t codebooks = config_.codebooks;
  for (int64_t begin = 0; begin < total; begin += ops_.max_rows()) {
    const int64_t rows = std::min(total - begin, ops_.max_rows());
    const int64_t followed =
        std::min(rows, total - begin - 1);  // the very last row is followed by a frame to draw
    ops_.upload(ids_.cols_from(0, rows), host_ints(prompt.ids.data() + begin, 1, rows));
    if (followed > 0)
      ops_.upload(next_ids_.cols_from(0, followed), host_ints(prompt.ids.data() + begin + 1, 1, followed));
    if (!prompt.codes.empty()) {
      ops_.upload(row_codes_.rows_from(0, rows),
                  host_ints(prompt.codes.data() + begin * codebooks, rows, codebooks));
      if (followed > 0) {
        ops_.upload(next_codes_.rows_from(0, followed),
                    host_ints(prompt.codes.data() + (begin + 1) * codebooks, followed, codebooks));
      }
    }
    const View hidden = hidden_.rows_from(0, rows);
    backbone_.run(hidden, {ids_.cols_from(0, rows), row_codes_.rows_from(0, rows)});
    if (followed > 0) {
      tower_.append(hidden.rows_from(0, followed),
                    {next_ids_.cols_from(0, followed), next_codes_.rows_from(0, followed)});
    }
    if (followed < rows) ops_.copy(last_, hidden.rows_from(rows - 1, 1));
  }
}

void ModelGenerator::enqueue_frame() {
  if (enqueued_ == 0) {
    ops_.run_step(kDrawStep, draw_step_);
  } else {
    ops_.run_step(kAppendStep, append_step_);
  }
  ops_.send(static_cast<int>(enqueued_ % kMailSlots), drawn_);
  ++enqueued_;
}

// A device is given the frame after this one before the codes of this one are waited for; if this one turns
// out to be the last, that frame was in vain. The first frame goes alone: its samples are waited for.
bool ModelGenerator::next(std::span<int32_t> codes) {
  if (enqueued_ == frames_) enqueue_frame();
  if (ops_.runs_ahead() && frames_ > 0 && enqueued_ < max_frames_) enqueue_frame();
  ops_.receive(host_ints(received_.data(), 1, config_.codebooks + 1), static_cast<int>(frames_ % kMailSlots));
  std::copy_n(received_.begin(), codes.size(), codes.begin());
  const int32_t failure = received_.back();
  if (failure != 0) {
    fail("codebook ", (failure - 1) % 16,
         ": expected finite logits, got NaN or infinity; the checkpoint is damaged (--verify names the "
         "tensor)");
  }
  ++frames_;
  return codes[0] < semantic_count_;
}

void ModelGenerator::draw_frame() {
  {
    const StageTimer timer(seconds_.backbone);
    backbone_.candidate_logits(logits_, last_);
  }
  {
    const StageTimer timer(seconds_.sampler);
    ops_.pick(codes_.cols_from(0, 1), logits_, pick_, 0);
  }
  const StageTimer timer(seconds_.tower);
  tower_.draw_frame(last_, {frame_id_, codes_}, pick_);
  ops_.advance(pick_.frame, 1);
}

void ModelGenerator::append_frame() {
  {
    const StageTimer timer(seconds_.backbone);
    backbone_.run(last_, {frame_id_, codes_});
  }
  draw_frame();
}

}  // namespace drama3
