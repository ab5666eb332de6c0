// What the stages of the oracle share: backend, model, reference, settings, and the list of comparisons.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/oracle_dump.h"
#include "apps/oracle_measure.h"
#include "apps/oracle_reference.h"
#include "lib/engine/model.h"

namespace drama3 {

// One compared tensor.
struct Comparison {
  std::string stage;   // tokenizer, sampler, backbone, tower or codec
  std::string tensor;  // file:name in the reference's words
  std::string shape;
  Distance distance;
  Bar bar;
  bool judged = true;
  bool passed = true;
  std::string remark;  // what differs first, or how a comparison was bounded
};

// How one tensor is to be judged.
struct Judgement {
  std::string tensor;
  Subject subject = Subject::kNone;
  bool logits = false;
  std::string remark = {};
};

struct ReplaySettings {
  bool quantize_activations = true;
  bool force_routing = false;
};

class Replay {
 public:
  Replay(Ops& ops_in, const Model& model_in, Reference& reference_in, const ReplaySettings& settings_in)
      : ops(ops_in), model(model_in), reference(reference_in), settings(settings_in) {}

  Ops& ops;
  const Model& model;
  Reference& reference;
  const ReplaySettings settings;
  Dump dump;
  std::string stage;  // the one that runs
  std::vector<Comparison> comparisons;
  std::vector<std::string> remarks;  // what was left out, and why

  bool half_activations() const { return ops.activation_type() != DType::kF32; }
  bool half_codec() const { return ops.codec_type() != DType::kF32; }

  // Appends a comparison; tensors of another size than the reference's fail with a remark.
  void compare(const Judgement& judgement, const FloatTensor& got, const FloatTensor& want);
  void compare(const Judgement& judgement, const IntTensor& got, const IntTensor& want);
  // Argmax of rows against the reference's, where its margin exceeds 4 times the row's largest logit error.
  void compare_argmax(const std::string& tensor, const FloatTensor& got, const FloatTensor& want);

 private:
  template <typename Tensor>
  void add(const Judgement& judgement, const Tensor& got, const Tensor& want);
};

// Each compares what the reference holds for its stage.
void replay_tokenizer(Replay& replay);
void replay_sampler(Replay& replay);
void replay_backbone(Replay& replay);
void replay_tower(Replay& replay);
void replay_codec(Replay& replay);

}  // namespace drama3
