// The backbone on CUDA: golden rows at the bars of a BF16 backend, and the same bits however it is run.
#include "lib/backbone/backbone.h"

#include "lib/store/tensor_file.h"
#include "tests/cuda/rig.h"

using namespace drama3;
using namespace drama3::cuda_test;

namespace {

struct Runner {
  explicit Runner(const CudaOptions& options = {}) : tiny(options) {}
  Tiny tiny;
  Workspace workspace{*tiny.ops};
  backbone::Backbone backbone{workspace, tiny.model.config.backbone, tiny.model.backbone, tiny.model.tables,
                              256};

  // Hidden rows of these ids, in calls of cuts[0], cuts[1], ... rows.
  std::vector<float> run(const View& ids, const std::vector<int64_t>& cuts) {
    Ops& ops = *tiny.ops;
    const int64_t rows = ids.elements(), width = tiny.model.config.backbone.hidden;
    const Buffer hidden = ops.allocate(DType::kBF16, Shape{rows, width});
    const Buffer codes = ops.allocate(DType::kI32, Shape{rows, 10});
    const Buffer device_ids = ops.allocate(DType::kI32, Shape{1, rows});
    ops.upload(device_ids.view, View(ids.data, DType::kI32, Shape{1, rows}));
    backbone.reset();
    int64_t begin = 0;
    for (size_t i = 0; begin < rows; ++i) {
      const int64_t count = std::min(cuts[i % cuts.size()], rows - begin);
      backbone.run(hidden.view.rows_from(begin, count),
                   {device_ids.view.cols_from(begin, count), codes.view.rows_from(begin, count)});
      begin += count;
    }
    return values_of(ops, hidden.view);
  }
};

}  // namespace

TEST_CASE("cuda: hidden rows meet the end-to-end bars of a BF16 backend" * doctest::skip(no_device())) {
  Runner runner;
  TensorFile golden(golden_path("backbone.safetensors"));
  for (const std::string name : {"a", "b", "c", "d"}) {
    const View want = golden.tensor_named(name + ".hidden");
    const std::vector<float> got = runner.run(golden.tensor_named(name + ".ids"), {128});
    const std::vector<double> cosines = row_cosines(got, want.row<float>(0), want.cols());
    const auto low = std::count_if(cosines.begin(), cosines.end(), [](double c) { return c < 0.999; });
    MESSAGE("case ", name, ": worst row cosine ", cosines.front(), ", median ", cosines[cosines.size() / 2],
            ", ", low, " of ", cosines.size(), " rows below 0.999");
    CHECK(cosines[cosines.size() / 2] >= 0.999);
    CHECK(static_cast<double>(low) <= 0.1 * static_cast<double>(cosines.size()));
    CHECK(cosines.front() >= 0.95);
  }
}

TEST_CASE("cuda: a layer fed golden rows has a median row cosine of 0.9999" * doctest::skip(no_device())) {
  Runner runner;
  Ops& ops = *runner.tiny.ops;
  TensorFile golden(golden_path("backbone.safetensors"));
  for (int layer = 0; layer < 3; ++layer) {
    const View in = golden.tensor_named(join("a.layer_in.", layer));
    const View want = golden.tensor_named(join("a.layer_in.", layer + 1));
    const Buffer x = ops.allocate(DType::kBF16, Shape{in.rows(), in.cols()});
    ops.upload(x.view, in);
    runner.backbone.run_layer(layer, x.view);
    if (layer == 2) runner.backbone.final_norm(x.view, x.view);
    const std::vector<double> cosines = row_cosines(values_of(ops, x.view), want.row<float>(0), want.cols());
    MESSAGE("layer ", layer, ": worst row cosine ", cosines.front(), ", median ",
            cosines[cosines.size() / 2]);
    CHECK(cosines[cosines.size() / 2] >= 0.9999);
  }
}

TEST_CASE("cuda: 1, 7, 64, 100 and 128 rows per call give the same bits" * doctest::skip(no_device())) {
  Runner runner;
  TensorFile golden(golden_path("backbone.safetensors"));
#ifdef DRAMA3_EMULATED  // fibers are slow
  const View ids = golden.tensor_named("d.ids");
  const std::vector<std::vector<int64_t>> all_cuts = {{1}, {7}, {3, 40, 1}};
#else
  const View ids = golden.tensor_named("b.ids");
  const std::vector<std::vector<int64_t>> all_cuts = {{1}, {7}, {64}, {100}, {128}, {3, 64, 1}};
#endif
  const std::vector<float> whole = runner.run(ids, {ids.elements()});
  for (const std::vector<int64_t>& cuts : all_cuts) {
    CAPTURE(cuts[0]);
    CHECK(same_bits(runner.run(ids, cuts), whole));
  }
}

TEST_CASE("cuda: merged and single launches, early and late starts give the same bits" *
          doctest::skip(no_device())) {
  TensorFile golden(golden_path("backbone.safetensors"));
  const View ids = golden.tensor_named("a.ids");
  const std::vector<float> merged = Runner(CudaOptions{}).run(ids, {1});
  CHECK(same_bits(Runner(CudaOptions{.fuse = false}).run(ids, {1}), merged));
  CHECK(same_bits(Runner(CudaOptions{.overlap = false}).run(ids, {1}), merged));
}
