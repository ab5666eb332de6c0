// Frames in, PCM out: grouping, the cap, cancellation and the end of speech.
#include "lib/engine/session.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/base/error.h"

namespace drama3 {

template <typename Name, typename Body>
auto Session::in_stage(const Name& name, const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(join(name_, name(), ": ", error.what()));
  }
}

Session::Session(FrameGenerator& generator, Vocoder& vocoder, int64_t max_frames)
    : generator_(generator),
      vocoder_(vocoder),
      codes_(static_cast<size_t>(max_frames * generator.codebooks())) {}

SessionResult Session::run(const SessionRequest& request, std::span<float> pcm, const FramesSink& sink) {
  const int64_t codebooks = generator_.codebooks();
  INVARIANT(request.max_frames > 0 && request.max_frames * codebooks <= static_cast<int64_t>(codes_.size()),
            request.max_frames, " frames");
  INVARIANT(static_cast<int64_t>(pcm.size()) >= request.max_frames * vocoder_.samples_per_frame(),
            pcm.size());
  INVARIANT(request.chunks.first > 0 && request.chunks.next > 0, request.chunks.first, ", ",
            request.chunks.next);

  name_ = request.name;
  in_stage([] { return "prompt"; },
           [&] { generator_.start(request.prompt, request.sampling, request.max_frames); });
  vocoder_.start();
  decoded_ = calling_ = group_end_ = 0;
  int64_t drawn = 0;
  int64_t next_group = request.chunks.first;  // frames at which the next group is whole
  for (; drawn < request.max_frames; ++drawn) {
    if (request.stop.stop_requested()) return {.frames = decoded_, .finish = Finish::kCancelled};
    const auto frame =
        std::span(codes_).subspan(static_cast<size_t>(drawn * codebooks), static_cast<size_t>(codebooks));
    if (!in_stage([&] { return join("frame ", drawn); }, [&] { return generator_.next(frame); })) break;
    if (!finish_group(pcm, sink)) return {.frames = decoded_, .finish = Finish::kCancelled};
    if (drawn + 1 < next_group) continue;
    begin_group(drawn + 1);
    const bool waits = !vocoder_.runs_ahead() || next_group == request.chunks.first;
    if (waits && !finish_group(pcm, sink)) return {.frames = decoded_, .finish = Finish::kCancelled};
    next_group = drawn + 1 + request.chunks.next;
  }
  const Finish finish = drawn < request.max_frames ? Finish::kStop : Finish::kLength;
  if (!finish_group(pcm, sink)) return {.frames = decoded_, .finish = Finish::kCancelled};
  begin_group(drawn);
  if (!finish_group(pcm, sink)) return {.frames = decoded_, .finish = Finish::kCancelled};
  return {.frames = drawn, .finish = finish};
}

void Session::begin_group(int64_t end) {
  group_end_ = end;
  if (decoded_ < end) begin_call();
}

void Session::begin_call() {
  const int64_t codebooks = generator_.codebooks();
  calling_ = std::min(group_end_ - decoded_, vocoder_.max_frames_per_call());
  const auto codes = std::span(codes_).subspan(static_cast<size_t>(decoded_ * codebooks),
                                               static_cast<size_t>(calling_ * codebooks));
  in_stage([this] { return call_name(); }, [&] { vocoder_.begin(codes); });
}

std::string Session::call_name() const {
  return join("codec, frames ", decoded_, " to ", decoded_ + calling_ - 1);
}

bool Session::finish_group(std::span<float> pcm, const FramesSink& sink) {
  if (decoded_ == group_end_) return true;
  const int64_t samples = vocoder_.samples_per_frame();
  for (;;) {
    const auto part =
        pcm.subspan(static_cast<size_t>(decoded_ * samples), static_cast<size_t>(calling_ * samples));
    in_stage([this] { return call_name(); }, [&] { vocoder_.finish(part); });
    decoded_ += calling_;
    if (decoded_ == group_end_) return !sink || sink(decoded_);
    begin_call();
  }
}

}  // namespace drama3
