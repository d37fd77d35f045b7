#pragma once

// The part of the Hopper kernel for grid attention (grid_attention/wgmma.cu) that finds work and
// starts copies.

#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/grid_attention/steps.cuh"
#include "ops/cuda/ptx/ptx.cuh"
#include "ops/cuda/ptx/ring.cuh"

namespace fovea::cuda::grid_wgmma {

inline constexpr int kDim = kGridDim;
inline constexpr int kDimBlocks = kGridDimBlocks;
inline constexpr int kConsumers = 2;
inline constexpr int kGroupQueries = 64;
inline constexpr int kQueries = kConsumers * kGroupQueries;  // of a tile
inline constexpr int kConsumerWarps = kConsumers * kGroup / kWarp;
inline constexpr int kWarpQueries = 16;
inline constexpr int kThreads = (kConsumers + 1) * kGroup;
inline constexpr int kConsumerRegisters =
    232;  // per thread; 2 * 232 + 40 fit into the register file
inline constexpr int kCopyRegisters = 40;
inline constexpr float kHeadroom = 8.0f;
inline constexpr int kGroupBarrier = 1;  // named barriers 1 and 2; 0 is __syncthreads

template <class P>
struct Shared {
  OperandRows<kGroupQueries, kDimBlocks> queries[kConsumers];
  GridStep<P> steps[P::kStages];
  alignas(8) std::uint64_t full[P::kStages];
  alignas(8) std::uint64_t empty[P::kStages];
  // followed by the tables and the biases, see GridTables
};

/// A tile of queries of one head of one image.
struct Item {
  int image;
  int first_row;    // of the image
  int first_query;  // in the image
  int head;
};

/// The items of one CTA: every gridDim.x-th of all. Tiles of one head follow each other, so that
/// CTAs at work share its keys and values in L2.
class Items {
 public:
  __device__ Items(const GridWork& w, int images)
      : tokens_(w.height * w.width),
        tiles_((tokens_ + kQueries - 1) / kQueries),
        heads_(w.num_heads),
        count_(images * heads_ * tiles_) {}

  [[nodiscard]] __device__ Item at(int number) const {
    const int tile = number % tiles_;
    const int head = number / tiles_ % heads_;
    const int image = number / tiles_ / heads_;
    return {image, image * tokens_, tile * kQueries, head};
  }
  template <class F>
  __device__ void for_each(const F& body) const {
    for (int number = static_cast<int>(blockIdx.x); number < count_;
         number += static_cast<int>(gridDim.x)) {
      body(at(number));
    }
  }

 private:
  int tokens_;
  int tiles_;
  int heads_;
  int count_;
};

/// Copies packed steps into the ring. For one thread.
template <class P>
__device__ void copy_steps(const GridWork& w, const Items& items, Shared<P>& s) {
  constexpr int kBytes = static_cast<int>(sizeof(GridStep<P>));
  Position<P::kStages> at;
  items.for_each([&](const Item& item) {
    const GridStep<P>* const from = grid_steps<P>(w, item.image, item.head);
    for (int step = 0; step < w.height / P::kRows; ++step) {
      wait_for(s.empty[at.stage], at.phase ^ 1);
      const std::uint32_t full = ptx::shared_address(&s.full[at.stage]);
      ptx::barrier_arrive_expecting(full, kBytes);
      ptx::copy_bulk(ptx::shared_address(&s.steps[at.stage]), from + step, kBytes, full);
      at.advance();
    }
  });
}

}  // namespace fovea::cuda::grid_wgmma
