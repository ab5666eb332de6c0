// The backbone against golden hidden rows and logits, and against itself for other cuts into calls.
#include "lib/backbone/backbone.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/ref/ref_ops.h"
#include "lib/store/checkpoint.h"
#include "tests/model/golden_tensors.h"

using namespace drama3;

namespace {

double relative_l2(const float* got, const float* want, int64_t count) {
  double difference = 0.0, norm = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    difference += std::pow(double{got[i]} - want[i], 2);
    norm += std::pow(double{want[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

struct Rig {
  RefOps ops;
  Checkpoint checkpoint{DRAMA3_TEST_DATA "/golden/tiny"};
  backbone::Config config = tiny_backbone();
  backbone::Weights weights = load_weights(ops, checkpoint, config);
  EmbedTables tables{.text = weights.embedding,
                     .codes = {},
                     .code_vocabulary = 256,
                     .semantic_start = config.semantic_start,
                     .semantic_count = config.semantic_count};
  Workspace workspace{ops};
  backbone::Backbone backbone{workspace, config, weights, tables, 256};

  Buffer run(const View& ids, const std::vector<int64_t>& cuts, const backbone::Probe& probe = {}) {
    const int64_t rows = ids.elements();
    Buffer hidden = ops.allocate(DType::kF32, Shape{rows, config.hidden});
    const Buffer codes = ops.allocate(DType::kI32, Shape{rows, 10});
    const View flat(ids.data, DType::kI32, Shape{1, rows});
    backbone.reset();
    int64_t begin = 0;
    for (size_t i = 0; begin < rows; ++i) {
      const int64_t count = std::min(cuts[i % cuts.size()], rows - begin);
      backbone.run(hidden.view.rows_from(begin, count),
                   {flat.cols_from(begin, count), codes.view.rows_from(begin, count)}, probe);
      begin += count;
    }
    return hidden;
  }
};

}  // namespace

TEST_CASE("without activation quantisation every row meets 1e-5") {
  Rig rig;
  const GoldenTensors golden("backbone.safetensors");
  for (const std::string name : {"a", "b", "c", "d"}) {
    const View want = golden[name + ".hidden_noact"];
    const Buffer got = rig.run(golden[name + ".ids"], {128}, {.quantize_activations = false});
    double worst = 0.0;
    for (int64_t r = 0; r < want.rows(); ++r) {
      worst = std::max(worst, relative_l2(got.view.row<float>(r), want.row<float>(r), want.cols()));
    }
    CAPTURE(name);
    CHECK(worst < 1e-5);
  }
}

TEST_CASE("with activation quantisation hidden rows and logits meet the end-to-end bars") {
  Rig rig;
  const GoldenTensors golden("backbone.safetensors");
  for (const std::string name : {"a", "b", "c", "d"}) {
    const View want = golden[name + ".hidden"];
    const Buffer got = rig.run(golden[name + ".ids"], {128});
    CAPTURE(name);
    CHECK(relative_l2(got.view.row<float>(0), want.row<float>(0), want.elements()) < 1e-2);
    const View logits = golden[name + ".semantic_logits"];
    const Buffer ours = rig.ops.allocate(DType::kF32, Shape{1, logits.elements()});
    rig.backbone.candidate_logits(ours.view, got.view.rows_from(want.rows() - 1, 1));
    CHECK(relative_l2(ours.view.row<float>(0), logits.row<float>(0), logits.elements()) < 1e-2);
  }
}

TEST_CASE("1, 7, 64, 100 and 128 rows per call give the same bits") {
  Rig rig;
  const GoldenTensors golden("backbone.safetensors");
  const Buffer whole = rig.run(golden["b.ids"], {130});
  for (const std::vector<int64_t>& cuts :
       std::vector<std::vector<int64_t>>{{1}, {7}, {64}, {100}, {128}, {3, 64, 1}}) {
    const Buffer cut = rig.run(golden["b.ids"], cuts);
    CAPTURE(cuts[0]);
    CHECK(std::memcmp(cut.view.data, whole.view.data, whole.view.bytes()) == 0);
  }
}
