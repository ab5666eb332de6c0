// Frames in, PCM out: grouping, the cap, cancellation and the end of speech.
#include "lib/engine/session.h"

#include <algorithm>

#include "lib/base/check.h"

namespace drama3 {

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

  generator_.start(request.prompt, request.sampling, request.max_frames);
  vocoder_.start();
  int64_t done = 0;  // frames decoded and reported
  int64_t drawn = 0;
  int64_t group_end = request.chunks.first;
  for (; drawn < request.max_frames; ++drawn) {
    if (request.stop.stop_requested()) return {.frames = done, .finish = Finish::kCancelled};
    const auto frame =
        std::span(codes_).subspan(static_cast<size_t>(drawn * codebooks), static_cast<size_t>(codebooks));
    if (!generator_.next(frame)) break;
    if (drawn + 1 < group_end) continue;
    if (!flush(done, drawn + 1, pcm, sink)) return {.frames = drawn + 1, .finish = Finish::kCancelled};
    done = drawn + 1;
    group_end = done + request.chunks.next;
  }
  const Finish finish = drawn < request.max_frames ? Finish::kStop : Finish::kLength;
  if (done < drawn && !flush(done, drawn, pcm, sink)) return {.frames = drawn, .finish = Finish::kCancelled};
  return {.frames = drawn, .finish = finish};
}

bool Session::flush(int64_t done, int64_t drawn, std::span<float> pcm, const FramesSink& sink) {
  const int64_t codebooks = generator_.codebooks();
  const int64_t samples = vocoder_.samples_per_frame();
  for (int64_t begin = done; begin < drawn;) {
    const int64_t frames = std::min(drawn - begin, vocoder_.max_frames_per_call());
    vocoder_.decode(std::span(codes_).subspan(static_cast<size_t>(begin * codebooks),
                                              static_cast<size_t>(frames * codebooks)),
                    pcm.subspan(static_cast<size_t>(begin * samples), static_cast<size_t>(frames * samples)));
    begin += frames;
  }
  return !sink || sink(drawn);
}

}  // namespace drama3
