// drama3-oracle on the golden data, on golden data with one value changed, and on a checkpoint of other
// sizes.
#include "apps/oracle.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "apps/tool.h"
#include "kernels/ref/ref_ops.h"
#include "lib/backbone/weights.h"
#include "lib/engine/model_config.h"
#include "lib/engine/tokenizer_file.h"
#include "lib/store/safetensors.h"
#include "lib/tower/weights.h"
#include "tests/apps/random_checkpoint.h"
#include "tests/audio/scratch_folder.h"

using namespace drama3;
namespace fs = std::filesystem;

namespace {

const std::string kGolden = DRAMA3_TEST_DATA "/golden";

struct OracleRun {
  int exit_code = 0;
  nlohmann::json document;
};

// Runs the tool with --json into a file, and further arguments.
OracleRun run_oracle(const std::string& model, const std::string& reference, std::vector<std::string> more) {
  const ScratchFolder scratch;
  const std::string json = scratch / "report.json";
  std::vector<std::string> arguments = {"drama3-oracle", "--quiet", "--model", model,
                                        "--reference",   reference, "--json",  json};
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  OracleRun run;
  run.exit_code = oracle_main(static_cast<int>(argv.size()), argv.data());
  if (fs::exists(json)) run.document = nlohmann::json::parse(bytes_of(json));
  return run;
}

// A copy of the golden folder but for the checkpoint.
void copy_golden(const ScratchFolder& scratch) {
  for (const auto& entry : fs::directory_iterator(kGolden)) {
    if (entry.is_regular_file()) fs::copy_file(entry.path(), scratch / entry.path().filename().string());
  }
}

// Changes entry `index` of an F32 or I32 tensor: adds to a real, or one to an integer.
void disturb(const std::string& path, const std::string& tensor, size_t index, float by) {
  std::string bytes = bytes_of(path);
  for (const SafetensorsEntry& entry : parse_safetensors(path, std::as_bytes(std::span(bytes)))) {
    if (entry.name != tensor) continue;
    char* at = bytes.data() + entry.begin + index * 4;
    if (entry.type == DType::kI32) {
      int32_t value;
      std::memcpy(&value, at, sizeof value);
      value = value == 0 ? 1 : value - 1;
      std::memcpy(at, &value, sizeof value);
    } else {
      float value;
      std::memcpy(&value, at, sizeof value);
      value += by;
      std::memcpy(at, &value, sizeof value);
    }
    put_file(path, bytes);
    return;
  }
  FAIL("no tensor " << tensor);
}

}  // namespace

TEST_CASE("every stage of the golden data passes on the CPU") {
  const OracleRun run = run_oracle(kGolden + "/tiny", kGolden, {"--device", "cpu", "--threads", "2"});
  CHECK(run.exit_code == kExitDone);
  CHECK(run.document["schema"] == "drama3-oracle/1");
  CHECK(run.document["failed"] == 0);
  CHECK(run.document["passed"] == 106);
  CHECK(run.document["first_departure"].is_null());
}

TEST_CASE("the switches: no activation quantisation compares *_noact alone, forced routing passes too") {
  const OracleRun plain =
      run_oracle(kGolden + "/tiny", kGolden, {"--stage", "backbone", "--no-activation-quantization"});
  CHECK(plain.exit_code == kExitDone);
  CHECK(plain.document["results"].size() == 2 + 3 + 4);
  const OracleRun forced = run_oracle(kGolden + "/tiny", kGolden, {"--stage", "backbone", "--force-routing"});
  CHECK(forced.exit_code == kExitDone);
  CHECK(forced.document["force_routing"] == true);
}

TEST_CASE("one changed value of the reference is exit code 4 and names the first stage that departs") {
  struct Change {
    const char* stage;
    const char* file;
    const char* tensor;
    size_t index;
    float by;
    const char* departure;
  };
  const Change changes[] = {
      {"backbone", "backbone.safetensors", "a.noact_layer_in.2", 300, 0.01f,
       "backbone:a.noact_layer_in.2 (layer 1"},
      {"backbone", "backbone.safetensors", "a.layer_in.3", 5000, 0.5f, "backbone:a.layer_in.3 (layer 2"},
      {"backbone", "backbone.safetensors", "a.routing.1", 7, 0.0f, "backbone:a.routing.1"},
      {"backbone", "backbone.safetensors", "quant.scale", 3, 1e-4f, "backbone:quant.scale"},
      {"backbone", "backbone.safetensors", "d.hidden_noact", 100, 0.01f, "backbone:d.hidden_noact"},
      {"backbone", "greedy.safetensors", "1.frame.7.semantic_logits", 3, 100.0f,
       "greedy:1.frame.*.semantic_logits"},
      {"tower", "greedy.safetensors", "0.tower.0.residual.3", 300, 0.01f, "greedy:0.tower.0.residual.3"},
      {"tower", "reference.safetensors", "logits", 64 * 92 * 4 + 5, 0.01f, "reference:logits[4]"},
      {"codec", "codec.safetensors", "fp32.upsample.1", 50, 0.01f, "codec:fp32.upsample.1"},
      {"codec", "codec.safetensors", "encode.codes", 17, 0.0f, "codec:encode.codes"},
      {"sampler", "sampler.safetensors", "1.logits", 0, 20.0f, "sampler:1."},
      {"tokenizer", "reference.safetensors", "ids", 4, 0.0f, "reference.json"},
  };
  for (const Change& change : changes) {
    CAPTURE(change.tensor);
    const ScratchFolder scratch;
    copy_golden(scratch);
    disturb(scratch / change.file, change.tensor, change.index, change.by);
    const OracleRun run = run_oracle(kGolden + "/tiny", scratch / "", {"--stage", change.stage});
    CHECK(run.exit_code == kExitBarMissed);
    const std::string departure = run.document["first_departure"];
    CHECK_MESSAGE(departure.find(change.departure) != std::string::npos, departure);
  }
}

namespace {

// config.json of the tiny checkpoint with other sizes of backbone and tower; the codec's stay.
nlohmann::json other_config() {
  nlohmann::json config = nlohmann::json::parse(bytes_of(kGolden + "/tiny/config.json"));
  nlohmann::json& text = config["text_config"];
  text["hidden_size"] = 128;
  text["num_hidden_layers"] = 4;
  text["layer_types"] = {"linear_attention", "full_attention", "full_attention", "linear_attention"};
  text["num_attention_heads"] = 6;
  text["num_key_value_heads"] = 2;
  text["head_dim"] = 64;
  text["linear_num_key_heads"] = 3;
  text["linear_num_value_heads"] = 3;
  text["linear_key_head_dim"] = 64;
  text["linear_value_head_dim"] = 32;
  text["moe_intermediate_size"] = 256;
  text["shared_expert_intermediate_size"] = 64;
  text["num_experts"] = 6;
  text["num_experts_per_tok"] = 3;
  nlohmann::json& tower = config["audio_decoder_config"];
  tower["dim"] = 128;
  tower["n_head"] = 2;
  tower["n_local_heads"] = 1;
  tower["head_dim"] = 64;
  tower["intermediate_size"] = 96;
  tower["vocab_size"] = 300;
  tower["shared_enrichment_layers"] = 1;
  tower["rotary_percent"] = 0.5;
  return config;
}

void write_checkpoint(const std::string& folder, const nlohmann::json& json) {
  fs::create_directory(folder);
  for (const char* name : {"codec.pth", "tokenizer.json"})
    fs::copy_file(kGolden + "/tiny/" + name, folder + "/" + name);
  put_file(folder + "/config.json", json.dump());
  const Tokenizer tokenizer = load_tokenizer(folder + "/tokenizer.json");
  const ModelConfig config =
      parse_model_config(JsonDocument::read(folder + "/config.json", kConfigLimits), tokenizer);
  RefOps ops;
  InventedWeights weights(11, Shape{64, config.tower.dim});
  backbone::load_weights(ops, weights, config.backbone);
  tower::load_weights(ops, weights, config.tower);
  put_file(folder + "/model.safetensors", weights.safetensors());
}

// Tensors of a file to write.
class FileOfTensors {
 public:
  void zeros(const std::string& name, const Shape& shape) {
    add(name, DType::kF32, shape, std::vector<int32_t>(static_cast<size_t>(shape.elements())));
  }
  void ints(const std::string& name, const Shape& shape, std::vector<int32_t> values) {
    add(name, DType::kI32, shape, std::move(values));
  }
  void write(const std::string& path) const {
    std::vector<SafetensorsTensor> list;
    std::string data;
    for (const auto& [tensor, values] : tensors_) {
      list.push_back(tensor);
      list.back().bytes = std::as_bytes(std::span(values));
      data.append(reinterpret_cast<const char*>(values.data()), values.size() * 4);
    }
    put_file(path, safetensors_header(list) + data);
  }

 private:
  void add(const std::string& name, DType type, const Shape& shape, std::vector<int32_t> values) {
    tensors_.push_back({{name, type, shape, {}}, std::move(values)});
  }
  std::vector<std::pair<SafetensorsTensor, std::vector<int32_t>>> tensors_;
};

std::vector<int32_t> random_ints(size_t count, uint32_t limit, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> values(count);
  for (int32_t& value : values) value = static_cast<int32_t>(random() % limit);
  return values;
}

// Inputs of every stage, with zeros where a reference's results stand.
void write_inputs(const std::string& folder) {
  fs::create_directory(folder);
  FileOfTensors backbone, greedy, recorded;
  const std::vector<int32_t> prompt = random_ints(21, 700, 1);
  backbone.ints("x.ids", Shape{150}, random_ints(150, 700, 2));  // more rows than one call takes
  for (const char* name : {"x.hidden", "x.hidden_noact"}) backbone.zeros(name, Shape{150, 128});
  backbone.zeros("x.semantic_logits", Shape{257});
  greedy.ints("0.codes", Shape{10, 3}, random_ints(30, 60, 3));
  greedy.zeros("0.prompt_hidden", Shape{21, 128});
  for (int frame = 0; frame < 3; ++frame) {
    greedy.zeros(join("0.frame.", frame, ".hidden"), Shape{128});
    greedy.zeros(join("0.frame.", frame, ".semantic_logits"), Shape{257});
    greedy.zeros(join("0.frame.", frame, ".logits"), Shape{9, 64});
  }
  std::vector<int32_t> mixed = prompt;
  mixed[5] = mixed[6] = -1;
  recorded.ints("ids", Shape{21}, mixed);
  recorded.ints("codes", Shape{10, 2}, random_ints(20, 60, 4));
  recorded.ints("frame", Shape{10}, random_ints(10, 60, 5));
  recorded.zeros("hidden", Shape{21, 128});
  recorded.zeros("semantic_logits", Shape{257});
  recorded.zeros("logits", Shape{9, 21, 64});
  backbone.write(folder + "/backbone.safetensors");
  greedy.write(folder + "/greedy.safetensors");
  recorded.write(folder + "/reference.safetensors");
  const nlohmann::json texts = {{{"text", "-"}, {"prompt", "-"}, {"ids", prompt}}};
  put_file(folder + "/greedy.json", texts.dump());
}

}  // namespace

TEST_CASE("a checkpoint of other sizes: what ref dumps is a reference that the CPU meets") {
  const ScratchFolder scratch;
  write_checkpoint(scratch / "model", other_config());
  write_inputs(scratch / "inputs");
  const OracleRun dumped =
      run_oracle(scratch / "model", scratch / "inputs", {"--device", "ref", "--dump", scratch / "reference"});
  CHECK(dumped.exit_code == kExitBarMissed);
  for (const char* device : {"ref", "cpu"}) {
    for (const char* stage : {"backbone", "tower"}) {
      CAPTURE(device);
      const OracleRun run =
          run_oracle(scratch / "model", scratch / "reference", {"--stage", stage, "--device", device});
      CHECK(run.exit_code == kExitDone);
      CHECK_MESSAGE(run.document["first_departure"].is_null(), run.document["first_departure"].dump());
      CHECK(run.document["failed"] == 0);
      // Four layers three times over, hidden rows and logits; and every stage and head of the tower.
      CHECK(run.document["results"].size() ==
            (stage == std::string("backbone") ? 12 + 4 + 4 + 3 : 1 + 9 + 9 + 3 + 9 + 2));
    }
  }
}

TEST_CASE("one op replayed from what ref recorded passes on the CPU, and fails when its input is changed") {
  const ScratchFolder scratch;
  write_checkpoint(scratch / "model", other_config());
  write_inputs(scratch / "inputs");
  const std::string dump = scratch / "dump";
  CHECK(run_oracle(scratch / "model", scratch / "inputs", {"--device", "ref", "--dump", dump}).exit_code ==
        kExitBarMissed);
  const OracleRun all = run_oracle(scratch / "model", dump, {"--op", "all"});
  CHECK(all.exit_code == kExitDone);
  CHECK(all.document["passed"] == 29);
  disturb(dump + "/ops.safetensors", "delta_rule.in.decay", 5, 0.5f);
  const OracleRun changed = run_oracle(scratch / "model", dump, {"--op", "delta_rule"});
  CHECK(changed.exit_code == kExitBarMissed);
  CHECK(changed.document["first_departure"].get<std::string>().starts_with("op ops:delta_rule.out.read"));
  CHECK(run_oracle(scratch / "model", dump, {"--op", "delta"}).exit_code == kExitFailed);
}
