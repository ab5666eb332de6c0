// The bars of the oracle: how far a result may be from the reference, for F32 backends and for 16-bit ones.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

namespace drama3 {

inline constexpr double kOpen = std::numeric_limits<double>::infinity();

// Bounds that hold together; a default one is open. A row is the last axis of a tensor.
struct Bar {
  bool equal = false;          // every entry
  double absolute = kOpen;     // worst |difference| of an entry
  double entry = kOpen;        // worst |difference| / |reference| of an entry
  double relative_l2 = kOpen;  // |difference| / |reference| of the whole tensor
  double row = kOpen;          // the same of each row
  int64_t spared = 0;          // so many rows may exceed `row` ...
  double spared_row = kOpen;   // ... by up to this
  double row_cosine = -kOpen;  // least cosine of a row
  double median_cosine = -kOpen;
  double high_cosine = -kOpen;  // at most low_share of the rows lie below this cosine
  double low_share = 1.0;
  double kl = kOpen;        // worst KL(reference || ours) of a row of logits, in nats
  double overlap = -kOpen;  // least share of the 30 likeliest entries that both have in common
};

// What is compared.
enum class Subject : uint8_t {
  kIds,           // token ids and prompts
  kKeptSet,       // which entries a draw may take
  kProbability,   // of each kept entry
  kQuantCode,     // FP8 codes of activations
  kQuantScale,    // and their scales
  kRouting,       // experts of rows whose layer was fed the reference's input
  kLayerNoact,    // a layer fed the reference's input, no activation quantisation
  kLayer,         // a layer fed the reference's input
  kLayerForced,   // the same with the reference's routing
  kHiddenNoact,   // final-norm rows from ids, no activation quantisation
  kHidden,        // final-norm rows from ids
  kLogits,        // logits from ids
  kTowerStage,    // tower stages and logits from the reference's hidden rows and codes
  kArgmax,        // likeliest entry where the reference's margin exceeds 4 times the logit error seen
  kCodecStage,    // stages of the F32 decoder, and its PCM
  kHalfPcm,       // PCM of an F16 decoder against the reference's F16 run
  kHalfUpsample,  // its last upsampling stage
  kEncodeLatent,  // the encoder's output, F32 on every backend
  kEncodeCodes,
  kOp,    // one op fed recorded inputs
  kNone,  // shown, not judged
};

// The bars of one subject; a column without any bound is shown and not judged.
struct SubjectBars {
  Subject subject = Subject::kNone;
  std::string_view name = {};
  Bar full;  // F32 activations: ref and cpu
  Bar half;  // BF16 activations, F16 codec: cuda
};

inline constexpr std::array kBars{
    SubjectBars{Subject::kIds, "ids", {.equal = true}, {.equal = true}},
    SubjectBars{Subject::kKeptSet, "kept set", {.equal = true}, {.equal = true}},
    SubjectBars{Subject::kProbability, "probability", {.absolute = 1e-6}, {.absolute = 1e-6}},
    SubjectBars{Subject::kQuantCode, "quant.code", {.equal = true}, {.equal = true}},
    SubjectBars{Subject::kQuantScale, "quant.scale", {.entry = 1e-6}, {.entry = 1e-6}},
    SubjectBars{Subject::kRouting, "routing", {.equal = true}, {}},
    SubjectBars{Subject::kLayerNoact, "layer, no quantisation", {.row = 1e-5}, {}},
    SubjectBars{
        Subject::kLayer, "layer", {.row = 1e-5, .spared = 3, .spared_row = 5e-3}, {.median_cosine = 0.9999}},
    SubjectBars{Subject::kLayerForced,
                "layer, routing forced",
                {.row = 1e-5, .spared = 3, .spared_row = 5e-3},
                {.row_cosine = 0.998, .median_cosine = 0.9999}},
    SubjectBars{Subject::kHiddenNoact, "hidden, no quantisation", {.row = 1e-5}, {}},
    SubjectBars{Subject::kHidden,
                "hidden",
                {.relative_l2 = 1e-2, .row = 5e-2},
                {.row_cosine = 0.95, .median_cosine = 0.999, .high_cosine = 0.999, .low_share = 0.1}},
    SubjectBars{Subject::kLogits,
                "logits",
                {.relative_l2 = 1e-2, .row = 5e-2},
                {.row_cosine = 0.95,
                 .median_cosine = 0.999,
                 .high_cosine = 0.999,
                 .low_share = 0.1,
                 .kl = 0.03,
                 .overlap = 0.9}},
    SubjectBars{
        Subject::kTowerStage, "tower stage", {.relative_l2 = 1e-5, .row = 1e-5}, {.row_cosine = 0.998}},
    SubjectBars{Subject::kArgmax, "argmax", {.equal = true}, {.equal = true}},
    SubjectBars{Subject::kCodecStage, "codec stage", {.relative_l2 = 1e-5}, {}},
    SubjectBars{Subject::kHalfPcm, "F16 pcm", {}, {.relative_l2 = 1e-2}},
    SubjectBars{Subject::kHalfUpsample, "F16 upsampling", {}, {.relative_l2 = 3e-3}},
    SubjectBars{Subject::kEncodeLatent, "encode.latent", {.relative_l2 = 1e-5}, {.relative_l2 = 1e-5}},
    SubjectBars{Subject::kEncodeCodes, "encode.codes", {.equal = true}, {.equal = true}},
    SubjectBars{Subject::kOp, "op", {.relative_l2 = 1e-5, .row = 1e-5}, {.row_cosine = 0.998}},
    SubjectBars{Subject::kNone, "none", {}, {}},
};

}  // namespace drama3
