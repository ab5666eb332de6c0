// The loop of one request over two stages: a generator that draws frames and a vocoder that turns them into
// PCM.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lib/engine/engine.h"
#include "lib/ops/sampling.h"

namespace drama3 {

// One row per prompt token or reference frame.
struct PromptRows {
  std::vector<int32_t> ids;    // [rows]; -1 for a reference frame
  std::vector<int32_t> codes;  // [rows, codebooks], read where the id is -1; empty when there is none
};

// Draws a sequence's frames one after another. Errors of a draw name the codebook.
class FrameGenerator {
 public:
  virtual ~FrameGenerator() = default;
  virtual int64_t codebooks() const = 0;
  // Forgets the sequence before and computes the prompt. max_frames bounds the calls of next() that follow.
  virtual void start(const PromptRows& prompt, const Sampling& sampling, int64_t max_frames) = 0;
  // codes [codebooks] = the next frame; false, with codes undefined, when the model ends its speech instead.
  virtual bool next(std::span<int32_t> codes) = 0;
};

// Decodes frames in order; what it gives for a frame does not depend on how calls are cut. A call has two
// halves, so that frames may be drawn while a device decodes.
class Vocoder {
 public:
  virtual ~Vocoder() = default;
  virtual int64_t samples_per_frame() const = 0;
  virtual int64_t max_frames_per_call() const = 0;
  // Whether begin() returns before its samples exist.
  virtual bool runs_ahead() const = 0;
  // Forgets all calls before, one that was begun and not finished too.
  virtual void start() = 0;
  // codes [frames, codebooks], read before it returns; finish() comes before the next begin().
  virtual void begin(std::span<const int32_t> codes) = 0;
  // pcm [frames * samples_per_frame] of the frames begun.
  virtual void finish(std::span<float> pcm) = 0;
};

struct SessionRequest {
  std::string name;  // begins its errors, as in "piece 2 of 7, "; may be empty
  PromptRows prompt;
  Sampling sampling;
  int64_t max_frames = 0;
  ChunkPolicy chunks;
  std::stop_token stop;  // asked before every frame
};

struct SessionResult {
  int64_t frames = 0;  // decoded and reported
  Finish finish = Finish::kStop;
};

// Called with the number of frames of PCM that are final; it only rises. Returns false to cancel.
using FramesSink = std::function<bool(int64_t frames)>;

// Runs one request at a time; owns the code buffer, nothing else. Errors of a stage begin with its name and
// frames: "prompt: ", "frame 12: ", "codec, frames 5 to 12: ". After an error or a cancellation the next
// run() starts afresh.
class Session {
 public:
  // max_frames: the most frames of any request.
  Session(FrameGenerator& generator, Vocoder& vocoder, int64_t max_frames);

  // pcm: caller-owned, max_frames * samples_per_frame samples; those of finished frames never change. The
  // first group of policy.first frames is decoded and reported as soon as it exists, then groups of
  // policy.next; where the vocoder runs ahead, the latter once the frame after them has been drawn. Allocates
  // nothing.
  SessionResult run(const SessionRequest& request, std::span<float> pcm, const FramesSink& sink);

 private:
  // Begins to decode the frames from decoded_ up to `end`.
  void begin_group(int64_t end);
  // Finishes what has been begun and reports it; false when the sink cancels.
  bool finish_group(std::span<float> pcm, const FramesSink& sink);
  // Begins the vocoder's next call for the group.
  void begin_call();
  // Runs a part of the stage that `name` gives; an Error from it begins with request and stage.
  template <typename Name, typename Body>
  auto in_stage(const Name& name, const Body& body);
  std::string call_name() const;

  FrameGenerator& generator_;
  Vocoder& vocoder_;
  std::vector<int32_t> codes_;  // [max_frames, codebooks]
  std::string_view name_;       // of the request under way
  int64_t decoded_ = 0;         // frames whose samples are final
  int64_t calling_ = 0;         // frames of the vocoder's call under way, from decoded_ on
  int64_t group_end_ = 0;       // of the group under way; decoded_ when there is none
};

}  // namespace drama3
