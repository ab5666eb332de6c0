// Loading of a checkpoint and the checks between its parts.
#include "lib/engine/model.h"

#include "lib/base/error.h"
#include "lib/engine/tokenizer_file.h"

namespace drama3 {
namespace {

// The codes that the language model draws must be those that the codec knows.
void check_codebooks(const ModelConfig& config, const tower::Weights& tower, const codec::Weights& codec,
                     const std::string& file) {
  if (codec.codebooks() != config.tower.codebooks) {
    fail(file, ": expected ", config.tower.codebooks, " codebooks (audio_decoder_config.num_codebooks), got ",
         codec.codebooks());
  }
  for (int64_t k = 0; k < codec.codebooks(); ++k) {
    const int64_t entries = codec.quantizers[static_cast<size_t>(k)].table.rows();
    const int64_t drawn =
        k == 0 ? config.backbone.semantic_count : tower.heads[static_cast<size_t>(k) - 1].out;
    if (entries < drawn) {
      fail(file, ": codebook ", k, ": expected at least ", drawn,
           " entries, as many as its head draws from, got ", entries);
    }
  }
}

}  // namespace

Model::Model(Ops& ops, const std::string& path, const LoadOptions& options)
    : checkpoint(path),
      codec_file(checkpoint.codec_path()),
      tokenizer(load_tokenizer(checkpoint.tokenizer_path())),
      config(parse_model_config(JsonDocument::read(checkpoint.config_path(), kConfigLimits), tokenizer)),
      backbone(backbone::load_weights(ops, checkpoint, config.backbone)),
      tower(tower::load_weights(ops, checkpoint, config.tower)),
      codec(codec::load_weights(ops, codec_file, config.codec, options.codec_parts)),
      tables({.text = backbone.embedding,
              .codes = tower.code_embeddings,
              .code_vocabulary = config.tower.code_vocabulary,
              .semantic_start = config.backbone.semantic_start,
              .semantic_count = config.backbone.semantic_count}) {
  checkpoint.finish();
  const codec::UnusedNames unused = codec::unused_names(codec);
  codec_file.refuse_unused({.prefixes = unused.prefixes, .suffixes = unused.suffixes});
  check_codebooks(config, tower, codec, checkpoint.codec_path());
  if (options.verify) {
    checkpoint.refuse_non_finite();
    codec_file.refuse_non_finite();
  }
}

}  // namespace drama3
