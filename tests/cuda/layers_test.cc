// Layers of full size with random weights and rows against the definition, at the bars of a BF16 backend
// (tests/data/golden/README.md): three delta layers, three attention layers, each with its mixture, and the
// whole tower. On fibers the sizes are small.
#include <map>
#include <random>

#include "kernels/ref/ref_ops.h"
#include "lib/backbone/backbone.h"
#include "lib/ops/workspace.h"
#include "lib/tower/tower.h"
#include "tests/cuda/rig.h"
#include "tests/cuda/synthetic.h"

using namespace drama3;
using namespace drama3::cuda_test;

namespace {

#ifdef DRAMA3_EMULATED
constexpr int kLayersOfAKind = 1;
constexpr int64_t kRows = 3;
constexpr int64_t kEntries = 16;

backbone::Config backbone_sizes() {
  backbone::Config config = full_backbone(0);
  config.vocabulary = 64;
  config.hidden = 256;
  config.heads = 2;
  config.kv_heads = 1;
  config.delta.key_heads = 2;
  config.delta.value_heads = 4;
  config.experts = 8;
  config.top_k = 2;
  config.expert_ffn = config.shared_ffn = 128;
  config.semantic_start = 32;
  config.semantic_count = kEntries;
  config.end_token = 5;
  return config;
}
tower::Config tower_sizes() {
  return {.dim = 256,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 32,
          .ffn = 128,
          .eps = 1e-6f,
          .codebooks = 3,
          .code_vocabulary = kEntries,
          .shared_layers = 1,
          .rope_theta = 1e7f,
          .rotary = 12};
}
#else
constexpr int kLayersOfAKind = 3;
constexpr int64_t kRows = 6;
constexpr int64_t kEntries = 1024;

backbone::Config backbone_sizes() { return full_backbone(0); }
tower::Config tower_sizes() { return full_tower(); }
#endif

// The synthetic weights with the few shapes that a loader asks for, and with norm gains about 1 where the
// stored value is the gain itself: otherwise what comes after the norm would hardly count.
class Source final : public WeightSource {
 public:
  explicit Source(const tower::Config& tower)
      : heads_{kEntries, tower.dim},
        qkv_{(tower.heads + 2 * tower.kv_heads) * tower.head_dim, tower.dim},
        gains_(static_cast<size_t>(tower.dim)) {
    for (size_t i = 0; i < gains_.size(); ++i) {
      gains_[i] = float_to_bf16(0.75f + 0.5f * static_cast<float>(i * 37 % 64) / 64.0f);
    }
  }
  View need(const TensorRequest& request) override {
    const std::string& name = request.spellings.front();
    const bool gain = name.ends_with("norm.weight") && (name.starts_with("audio_decoder_mtp") ||
                                                        name.find("linear_attn.") != std::string::npos);
    return gain ? View(gains_.data(), DType::kBF16, request.shape) : weights_.need(request);
  }
  std::optional<View> find(const TensorRequest& request) override { return need(request); }
  std::optional<Shape> shape_of(std::string_view name) const override {
    if (name.find("heads.") != std::string_view::npos) return heads_;
    if (name.ends_with("block.attention.wqkv.weight")) return qkv_;
    return std::nullopt;
  }
  StoredMatrix need_matrix(const std::vector<std::string>& spellings, int64_t rows, int64_t cols) override {
    return weights_.need_matrix(spellings, rows, cols);
  }

 private:
  SyntheticSource weights_;
  Shape heads_, qkv_;
  std::vector<uint16_t> gains_;
};

// Values that BF16 holds, so that both backends start from the same; as large as the synthetic embedding's,
// so that what a layer adds is not lost beside them.
std::vector<float> random_rows(int64_t rows, int64_t cols, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<size_t>(rows * cols));
  for (float& value : values) {
    const float uniform = static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f;
    value = bf16_to_float(float_to_bf16(0.017f * uniform));
  }
  return values;
}

void upload(Ops& ops, const View& to, const float* values) {
  ops.upload(to, View(const_cast<float*>(values), DType::kF32, to.shape));
}

struct LayerRun {
  std::vector<float> rows;       // what the layer adds to the residual rows, and they
  std::vector<int32_t> experts;  // [rows, top_k]
};

// The backbone's layers on one backend.
struct Layers {
  Layers(Ops& ops_in, WeightSource& source, const backbone::Config& config_in)
      : ops(ops_in), config(config_in), weights(backbone::load_weights(ops, source, config)) {}

  // One layer over rows that follow nothing; `experts`, when given, takes the place of the router's choice.
  LayerRun run(int layer, const float* x, int64_t rows, const std::vector<int32_t>* experts = nullptr) {
    const View in = work.take(ops.activation_type(), Shape{rows, config.hidden});
    upload(ops, in, x);
    LayerRun out;
    backbone::Probe probe;
    probe.routing = [&](int, const Routing& routing) {
      out.experts.resize(static_cast<size_t>(rows * config.top_k));
      ops.download(View(out.experts.data(), DType::kI32, Shape{rows, config.top_k}), routing.indices);
    };
    std::vector<View> forced(config.layers.size());
    if (experts != nullptr) {
      forced[static_cast<size_t>(layer)] = work.take(DType::kI32, Shape{rows, config.top_k});
      ops.upload(forced[static_cast<size_t>(layer)],
                 View(const_cast<int32_t*>(experts->data()), DType::kI32, Shape{rows, config.top_k}));
      probe.forced_routing = forced;
    }
    backbone.run_layer(layer, in, probe);
    out.rows = values_of(ops, in);
    return out;
  }

  // The same with every row alone.
  LayerRun run_alone(int layer, const float* x, int64_t rows) {
    LayerRun all;
    for (int64_t r = 0; r < rows; ++r) {
      const LayerRun one = run(layer, x + r * config.hidden, 1);
      all.rows.insert(all.rows.end(), one.rows.begin(), one.rows.end());
      all.experts.insert(all.experts.end(), one.experts.begin(), one.experts.end());
    }
    return all;
  }

  Ops& ops;
  const backbone::Config& config;
  backbone::Weights weights;
  EmbedTables tables;
  Workspace work{ops};
  backbone::Backbone backbone{work, config, weights, tables, 256};
};

std::vector<float> difference(std::vector<float> a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

// Prints and judges a layer's rows: the median as of rows whose routing is free, and every row whose experts
// are the definition's as of rows whose routing is forced. At least so many rows must have them: of random
// routers the eighth and ninth expert of a row are often too close for BF16 to tell apart.
void judge(const std::string& name, const LayerRun& got, const LayerRun& want, const std::vector<float>& x,
           int64_t top_k, int64_t least_alike) {
  const auto rows = static_cast<int64_t>(want.experts.size()) / top_k;
  const int64_t width = static_cast<int64_t>(want.rows.size()) / rows;
  const std::vector<double> cosines = row_cosines(got.rows, want.rows.data(), width);
  double worst = 1.0;
  int64_t alike = 0;
  for (int64_t r = 0; r < rows; ++r) {
    if (!std::equal(got.experts.begin() + r * top_k, got.experts.begin() + (r + 1) * top_k,
                    want.experts.begin() + r * top_k)) {
      continue;
    }
    const std::vector<float> row(got.rows.begin() + r * width, got.rows.begin() + (r + 1) * width);
    worst = std::min(worst, row_cosines(row, want.rows.data() + r * width, width).front());
    ++alike;
  }
  const std::vector<float> change = difference(want.rows, x);
  MESSAGE(name, ": median row cosine ", cosines[cosines.size() / 2], ", worst ", cosines.front(), "; ", alike,
          " of ", rows, " rows have the definition's experts, worst of them ", worst,
          "; what it adds: relative L2 ", relative_l2(difference(got.rows, x), change.data()));
  CHECK(cosines[cosines.size() / 2] >= 0.9999);
  CHECK(worst >= 0.998);
  CHECK(alike >= least_alike);
}

using Stages = std::map<std::string, std::vector<float>>;

// The tower's stages of rows on one backend, in calls of so many rows.
Stages tower_stages(Ops& ops, WeightSource& source, const tower::Config& config, const std::vector<float>& x,
                    const std::vector<int64_t>& cuts) {
  const tower::Weights weights = tower::load_weights(ops, source, config);
  const EmbedTables tables{
      .text = ops.prepare_table(source.need({{"text"}, Shape{16, config.dim}, {DType::kBF16}})),
      .codes = weights.code_embeddings,
      .code_vocabulary = config.code_vocabulary,
      .semantic_start = 0,
      .semantic_count = 1};
  Workspace work(ops);
  tower::Tower tower(work, config, weights, tables, 256);
  const View hidden = work.take(ops.activation_type(), Shape{kRows, config.dim});
  upload(ops, hidden, x.data());
  const RowSource next{work.take(DType::kI32, Shape{1, kRows}),
                       work.take(DType::kI32, Shape{kRows, config.codebooks})};
  std::vector<int32_t> ids(kRows, -1), codes(static_cast<size_t>(kRows * config.codebooks));
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<int32_t>(i * 37 % kEntries);
  ops.upload(next.ids, View(ids.data(), DType::kI32, next.ids.shape));
  ops.upload(next.codes, View(codes.data(), DType::kI32, next.codes.shape));
  Stages stages;
  int64_t begin = 0;
  for (size_t i = 0; begin < kRows; ++i) {
    const int64_t rows = std::min(cuts[i % cuts.size()], kRows - begin);
    tower.append(hidden.rows_from(begin, rows),
                 {next.ids.cols_from(begin, rows), next.codes.rows_from(begin, rows)},
                 [&](const std::string& stage, const View& view) {
                   const std::vector<float> values = values_of(ops, view);
                   stages[stage].insert(stages[stage].end(), values.begin(), values.end());
                 });
    begin += rows;
  }
  return stages;
}

}  // namespace

TEST_CASE("cuda: backbone layers of full size meet the definition" * doctest::skip(no_device())) {
  backbone::Config config = backbone_sizes();
  for (int i = 0; i < kLayersOfAKind; ++i) {
    config.layers.push_back(backbone::Mixer::kDelta);
    config.layers.push_back(backbone::Mixer::kAttention);
  }
  Source source(tower_sizes());
  const auto cuda_ops = make_cuda_ops({});
  RefOps ref_ops;
  Layers cuda(*cuda_ops, source, config), ref(ref_ops, source, config);
  for (int layer = 0; layer < static_cast<int>(config.layers.size()); ++layer) {
    const std::string name = join("layer ", layer, layer % 2 == 0 ? " (delta)" : " (attention)");
    const std::vector<float> x = random_rows(kRows, config.hidden, static_cast<unsigned>(layer));
    const LayerRun want = ref.run(layer, x.data(), kRows);
    const LayerRun got = cuda.run(layer, x.data(), kRows);
    judge(name + ", rows together", got, want, x, config.top_k, 1);
    const LayerRun forced = cuda.run(layer, x.data(), kRows, &want.experts);
    CHECK(forced.experts == want.experts);
    judge(name + ", experts forced", forced, want, x, config.top_k, kRows);
    const LayerRun alone = cuda.run_alone(layer, x.data(), kRows);
    judge(name + ", each row alone", alone, ref.run_alone(layer, x.data(), kRows), x, config.top_k, 1);
    const auto first = static_cast<ptrdiff_t>(config.hidden);
    CHECK(same_bits({alone.rows.begin(), alone.rows.begin() + first},
                    {got.rows.begin(), got.rows.begin() + first}));
  }
}

TEST_CASE("cuda: the tower of full size meets the definition" * doctest::skip(no_device())) {
  const tower::Config config = tower_sizes();
  Source source(config);
  const std::vector<float> x = random_rows(kRows, config.dim, 99);
  RefOps ref;
  const Stages want = tower_stages(ref, source, config, x, {kRows});
  const auto cuda = make_cuda_ops({});
  const Stages got = tower_stages(*cuda, source, config, x, {kRows});
  REQUIRE(static_cast<int64_t>(want.size()) == config.shared_layers + config.residual_layers());
  double worst = 1.0;
  for (const auto& [stage, rows] : want) {
    const double least = row_cosines(got.at(stage), rows.data(), config.dim).front();
    worst = std::min(worst, least);
    CAPTURE(stage);
    CHECK(least >= 0.998);
  }
  MESSAGE("tower, ", want.size(), " layers: worst row cosine ", worst, " after any of them");
  CHECK(tower_stages(*cuda, source, config, x, {1}) == got);
}
