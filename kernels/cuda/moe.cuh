// Packed FP8 experts, the workspace of their products, and the arguments of the mixture's kernels.
#pragma once

#include "kernels/cuda/common/args.cuh"
#include "kernels/cuda/common/launch.cuh"
#include "kernels/cuda/linear.cuh"

namespace drama3 {

constexpr int kGroup = 128;  // columns of one quantisation group
constexpr int kMaxTopK = 16;
constexpr int kMaxHidden = 2048;  // two groups for each of a block's eight warps
constexpr int kMaxFfn = 512;      // four groups
constexpr int kBlockWords = 128;  // 16-byte words of a 16 x 128 block of FP8 codes

// FP8 weights as 16 x 128 blocks: [two halves of 64 columns][upper, lower 8 rows][32 lanes] x 16 codes.
struct PackedExperts {
  const uint4* gate_up = nullptr;     // [experts, ffn / 16, hidden / 128, (gate, up)] blocks
  const uint4* down = nullptr;        // [experts, hidden / 16, ffn / 128] blocks
  const float* gate_scale = nullptr;  // [experts, ffn / 128, hidden / 128]
  const float* up_scale = nullptr;    // [experts, ffn / 128, hidden / 128]
  const float* down_scale = nullptr;  // [experts, hidden / 128, ffn / 128]
  int experts = 0;
  int hidden = 0;
  int ffn = 0;
};

struct RouteArgs {
  Rows<const float> logits{};  // [rows, experts]
  const int* forced = nullptr;
  int64_t forced_stride = 0;
  int* indices = nullptr;  // [rows, top_k]
  float* weights = nullptr;
  int64_t stride = 0;  // of indices and weights
  int rows = 0;
  int experts = 0;
  int top_k = 0;
  bool renormalize = true;
};
void route_rows(LaunchQueue& queue, const RouteArgs& args);

struct QuantizeArgs {
  const void* in = nullptr;
  int64_t in_stride = 0;
  bool in_float = false;  // F32, otherwise BF16
  Rows<uint8_t> codes;    // [rows, n]
  Rows<float> scales;     // [rows, groups]
  int rows = 0;
  int n = 0;
};
void quantize_groups(LaunchQueue& queue, const QuantizeArgs& args);

// Pairs (row * top_k + slot) sorted by expert.
struct PairList {
  int* offsets = nullptr;  // [experts + 1]
  int* pairs = nullptr;    // [rows * top_k]
};

struct ExpertArgs {
  PackedExperts experts;
  // One row: the blocks of gate and up take it from the logits as far as their slot, one of them all of it,
  // which it writes to indices and weights for the down projections.
  RouteArgs route;
  const bf16* in = nullptr;   // one row: [hidden]
  Rows<const uint8_t> codes;  // many rows: [rows, hidden]; down: [pairs, ffn]
  Rows<const float> scales;
  PairList list;
  float* activation = nullptr;  // [pairs, ffn]
  Rows<const float> weights;    // many rows: [rows, top_k]
  bf16* weighted = nullptr;     // [pairs, hidden]
  // The shared expert and the end of the block, one row only.
  const uint4* shared_down = nullptr;
  int shared_steps = 0;
  int shared_ffn = 0;
  const bf16* shared_gate_row = nullptr;  // [shared_ffn]
  const bf16* shared_up_row = nullptr;
  const bf16* shared_gate = nullptr;  // [1]
  bf16* out = nullptr;                // [hidden]
  bf16* residual = nullptr;           // += out, or null
  int* routed =
      nullptr;  // [2]: whether this row's routing is known, blocks that have used it; zero between rows
};
void list_pairs(LaunchQueue& queue, const PairList& list, const RouteArgs& route);
void experts_gate_up_rows(LaunchQueue& queue, const ExpertArgs& args);
void experts_down_rows(LaunchQueue& queue, const ExpertArgs& args);
// The one row, with the shared expert's end and the residual sum; one right after the other.
void experts_gate_up_row(LaunchQueue& queue, const ExpertArgs& args);
void experts_down_row(LaunchQueue& queue, const ExpertArgs& args);
// out [rows, hidden] = sum over slots of weighted, in slot order.
void combine_slots(LaunchQueue& queue, const Rows<bf16>& out, const bf16* weighted, int rows, int top_k,
                   int hidden);

}  // namespace drama3
