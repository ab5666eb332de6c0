// Arguments of the attention kernels.
#pragma once

#include "kernels/cuda/common/launch.cuh"
#include "lib/ops/dims.h"
#include "lib/tensor/dtype.h"

namespace drama3 {

constexpr int kChunk = 32;      // key positions of one partial softmax; chunks start at multiples of it
constexpr int kMaxGroup = 8;    // query heads of one key/value head
constexpr int kMaxHeads = 256;  // query heads of a row
constexpr int kMaxSplits = 16;  // blocks over which the chunks of one row are dealt

// Norm (optional) and RoPE of heads.
struct HeadTurn {
  const float* weight = nullptr;  // [head_dim], or null for no norm
  float eps = 0.0f;
  const float* cos = nullptr;  // [positions, rotary / 2]
  const float* sin = nullptr;
  int rotary = 0;
  bool interleaved = false;
};

struct AttendArgs {
  const void* query = nullptr;  // rows of heads
  int64_t query_stride = 0;
  int head_stride = 0;  // columns from one head to the next
  int head_offset = 0;
  void* keys = nullptr;  // [slots, kv_heads * head_dim]
  void* values = nullptr;
  int slots = 0;
  const int* position = nullptr;
  int rows = 0;
  int heads = 0;
  int kv_heads = 0;
  int window = 0;
  float scale = 1.0f;
  void* out = nullptr;
  int64_t out_stride = 0;
  // Fused form only (one row): the raw query is turned, the raw key turned and appended with the value.
  HeadTurn query_turn{}, key_turn{};
  const void* key = nullptr;    // [kv_heads * head_dim]
  const void* value = nullptr;  // [kv_heads * head_dim]
  const void* gate = nullptr;   // [..] or null
  int gate_stride = 0;
  int gate_offset = 0;
  // One row split over blocks.
  float* partial = nullptr;  // [chunks, heads, head_dim + 2]
  int* arrivals = nullptr;   // [kMaxHeads], zero between launches
};

// Many rows, keys in the cache; `split` deals one row's chunks over blocks.
void attend_rows(LaunchQueue& queue, DType type, int head_dim, const AttendArgs& args);
void attend_split(LaunchQueue& queue, DType type, int head_dim, const AttendArgs& args, bool fused);

struct TurnArgs {
  void* out = nullptr;
  int64_t out_stride = 0;
  const void* in = nullptr;
  int64_t in_stride = 0;
  int heads = 0;
  int head_stride = 0;
  int head_offset = 0;
  HeadTurn turn;
  const int* position = nullptr;
  int rows = 0;
};
void turn_heads(LaunchQueue& queue, DType type, int head_dim, const TurnArgs& args);

}  // namespace drama3
