// Projections of one row: one block for each multiprocessor walks over its share of the tiles, and every warp
// keeps a ring of pieces of its weights on the way into shared memory, across tiles and ahead of the launch
// before.
#include <algorithm>

#include "kernels/cuda/gemv_row.cuh"
#include "lib/base/check.h"

namespace drama3 {
namespace {

constexpr int kWarps = 16;
constexpr int kPieceSteps = 2;  // half a slice
constexpr int kPieceWords = kPieceSteps * 64;
constexpr int kPieceBytes = kPieceWords * 16;
static_assert(kSliceSteps % kPieceSteps == 0 && kWarps * 32 >= 2 * kReduceThreads);

// Where a warp's piece lies: slices warp, warp + kWarps, ... of all tiles of each unit of the block.
struct Piece {
  int unit = 0;  // units or more: there is none
  int slice = 0;
  int half = 0;  // pieces of the slice before it
};

// A warp's ring of pieces; every lane copies the words that it will read itself, so that no barrier is
// needed.
struct Ring {
  uint4* words;  // [stages, kPieceWords], from the lane's first word on
  Piece ahead;   // the next piece to load
  int stage = 0;
};

// Steps of the slice within its tile.
__device__ inline int first_step(const GemvArgs& args, int slice) {
  const int slices = args.slices();
  return (slice >= slices ? slice - slices : slice) * kSliceSteps;
}

__device__ inline Piece next_piece(const Piece& piece, const GemvArgs& args) {
  const int step = first_step(args, piece.slice) + (piece.half + 1) * kPieceSteps;
  if (piece.half + 1 < kSliceSteps / kPieceSteps && step < args.steps) {
    return {piece.unit, piece.slice, piece.half + 1};
  }
  if (piece.slice + kWarps < args.slices_of_unit()) return {piece.unit, piece.slice + kWarps, 0};
  return {piece.unit + static_cast<int>(gridDim.x), static_cast<int>(threadIdx.x) / 32, 0};
}

// Starts the copy of the piece that is ahead into a stage whose words the lane has read; one group of copies,
// empty past the last piece.
__device__ inline void load_ahead(Ring& ring, const GemvArgs& args, int units, int stage) {
  const Piece& piece = ring.ahead;
  if (piece.unit < units) {
    const int step = first_step(args, piece.slice) + piece.half * kPieceSteps;
    const int which = piece.slice >= args.slices() ? 1 : 0;
    const uint4* from = tile_weight(args, piece.unit, which) + step * 64 + threadIdx.x % 32;
    uint4* to = ring.words + stage * kPieceWords;
#pragma unroll
    for (int i = 0; i < 2 * kPieceSteps; ++i) {
      const bool there = step + i / 2 < args.steps;
      copy16(to + i * 32, there ? from + i * 32 : from, there);
    }
    ring.ahead = next_piece(piece, args);
  }
  close_copies();
}

// The slice's chain of products, its pieces taken from the ring.
template <typename T, int Stages>
__device__ inline void slice_products(float (&c)[4], Ring& ring, const GemvArgs& args, const T* xs, int units,
                                      int slice) {
  const int begin = first_step(args, slice), end = min(begin + kSliceSteps, args.steps);
#pragma unroll 1
  for (int first = begin; first < end; first += kPieceSteps) {
    await_copies<Stages - 1>();
    const uint4* words = ring.words + ring.stage * kPieceWords;
    uint4 upper[kPieceSteps], lower[kPieceSteps];
#pragma unroll
    for (int i = 0; i < kPieceSteps; ++i) upper[i] = words[i * 64], lower[i] = words[i * 64 + 32];
    load_ahead(ring, args, units, ring.stage);
    if (++ring.stage == Stages) ring.stage = 0;
#pragma unroll
    for (int i = 0; i < kPieceSteps; ++i) {
      if (first + i < args.steps) step_product<T>(c, upper[i], lower[i], xs, first + i);
    }
  }
}

template <typename T, int Stages>
__global__ void __launch_bounds__(kWarps * 32, 2) gemv_kernel(const GemvArgs args, int units) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int slices = args.slices(), slices_of_unit = args.slices_of_unit();
  uint4* words = reinterpret_cast<uint4*>(dynamic_shared());
  T* xs = reinterpret_cast<T*>(words + kWarps * Stages * kPieceWords);
  float* partial = reinterpret_cast<float*>(xs + args.steps * kStepK);  // [2, slices of a unit, 16]

  // The ring fills before the wait: weights depend on nothing.
  Ring ring{.words = words + warp * Stages * kPieceWords + threadIdx.x % 32,
            .ahead = {warp < slices_of_unit ? static_cast<int>(blockIdx.x) : units, warp, 0}};
#pragma unroll 1
  for (int stage = 0; stage < Stages; ++stage) load_ahead(ring, args, units, stage);
  prefetch_gains(args);
  wait_for_previous();
  allow_next();
  stage_row(xs, args, blockIdx.x == 0);
  __syncthreads();  // the row is staged

  int turn = 0;
#pragma unroll 1
  for (int unit = static_cast<int>(blockIdx.x); unit < units; unit += static_cast<int>(gridDim.x)) {
    float* sums = partial + turn % 2 * slices_of_unit * kTile;
#pragma unroll 1
    for (int slice = warp; slice < slices_of_unit; slice += kWarps) {
      float c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      slice_products<T, Stages>(c, ring, args, xs, units, slice);
      keep_slice(sums, slice, c);
    }
    __syncthreads();  // the unit's sums are written; those of the unit before are read
    // One warp, another each time, adds them up while the others go on.
    if (warp == turn % kWarps) finish_unit<T>(args, sums, unit, slices);
    ++turn;
  }
}

template <typename T>
void gemv_of(LaunchQueue& queue, const GemvArgs& args) {
  const int units = args.tiles() / args.tiles_of_unit();
  const int row_bytes = args.steps * kStepK * 2;
  const int sum_bytes = 2 * args.slices_of_unit() * kTile * static_cast<int>(sizeof(float));
  const int room = (queue.shared_limit - row_bytes - sum_bytes) / (kWarps * kPieceBytes);
  INVARIANT(room >= 1, "a row of ", args.k, " columns in ", queue.shared_limit, " shared bytes");
  const int stages = std::min(room, 3);
  const Geometry geometry{
      .grid = dim3(static_cast<unsigned>(std::min(units, queue.processors))),
      .block = kWarps * 32,
      .shared = static_cast<size_t>(kWarps * stages * kPieceBytes + row_bytes + sum_bytes)};
  if (stages == 3) return launch(queue, gemv_kernel<T, 3>, geometry, args, units);
  if (stages == 2) return launch(queue, gemv_kernel<T, 2>, geometry, args, units);
  launch(queue, gemv_kernel<T, 1>, geometry, args, units);
}

}  // namespace

void gemv(LaunchQueue& queue, DType input, const GemvArgs& args) {
  INVARIANT(args.swiglu == nullptr || (args.segment_count == 2 && args.segments[0].n == args.segments[1].n),
            "a SwiGLU of ", args.segment_count, " segments");
  if (input == DType::kBF16) return gemv_of<bf16>(queue, args);
  INVARIANT(input == DType::kF16, "rows of ", dtype_name(input));
  gemv_of<f16>(queue, args);
}

}  // namespace drama3
