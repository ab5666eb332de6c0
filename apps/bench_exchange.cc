// Rank records to CBOR and back: numbers keep all their bits.
#include "apps/bench_exchange.h"

#include <nlohmann/json.hpp>

namespace drama3 {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StageSeconds, prompt, backbone, tower, sampler, codec)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EngineInfo, model, device, device_name, device_reason, cpu_path, threads,
                                   sample_rate, samples_per_frame, max_rows, checkpoint_bytes, load_seconds)

namespace bench {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Gate, name, rule, checked, failed, first_failure)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SoundPicture, id, seconds, top_hertz, low, high, loudness)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RequestRecord, item, pass, rank, error, frames, samples, finish, sha256,
                                   peak, clipped, compute_seconds, first_audio_seconds, stages)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankRecord, rank, error, engine, driver, checkpoint_hash, memory_bytes,
                                   requests, stream_gates, stream_item, pictures)

std::string record_text(const RankRecord& record) {
  std::string text;
  nlohmann::json::to_cbor(nlohmann::json(record), text);
  return text;
}

RankRecord record_of_text(const std::string& text) {
  return nlohmann::json::from_cbor(text).get<RankRecord>();
}

}  // namespace bench
}  // namespace drama3
