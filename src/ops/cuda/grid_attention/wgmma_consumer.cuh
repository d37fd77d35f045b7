#pragma once

// The part of the Hopper kernel for grid attention (grid_attention/wgmma.cu) that multiplies.

#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/grid_attention/steps.cuh"
#include "ops/cuda/grid_attention/tables.cuh"
#include "ops/cuda/grid_attention/wgmma_feed.cuh"
#include "ops/cuda/ptx/ptx.cuh"
#include "ops/cuda/ptx/ring.cuh"

namespace fovea::cuda::grid_wgmma {

/// 2^x as by ptx::exp2_fast, but volatile: the compiler would otherwise move the waits for WGMMAs
/// that follow ahead of all exponentials.
__device__ inline float exp2_in_order(float x) {
  float y;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

template <class P>
class Consumer {
 public:
  __device__ Consumer(const GridWork& work, Shared<P>& shared, const WarpBiases<P>& biases)
      : work_(work),
        s_(shared),
        biases_(biases),
        group_(static_cast<int>(threadIdx.x) / kGroup),
        warp_(static_cast<int>(threadIdx.x) / kWarp),
        lane_(lane_index()),
        factor_(work.scale * ptx::kLog2E) {}

  __device__ void run(const Items& items) {
    items.for_each([&](const Item& item) {
      start(item);
      attend(work_.height / P::kRows);
      store(item);
    });
  }

 private:
  /// An even number of steps.
  __device__ void attend(int num_steps) {
    typename P::Scores even;
    typename P::Scores odd;
    typename P::Weights p;
    start_scores(even);
    ptx::wgmma_wait_group<0>(even);
    start_scores(odd);
    make_weights(0, even);
    ptx::wgmma_wait_group<0>(odd);
    round_weights(even, p);
    for (int step = 1; step + 1 < num_steps; step += 2) {
      advance(step, p, odd, even);
      advance(step + 1, p, even, odd);
    }
    start_values(p);
    make_weights(num_steps - 1, odd);
    finish_values();
    rescale_out();
    round_weights(odd, p);
    start_values(p);
    finish_values();
  }
  /// Starts the scores of the next step, and the sums of the values of the step before; while they
  /// run, turns the scores of this step into weights. No WGMMA is under way at the beginning and at
  /// the end: the compiler would serialise WGMMAs that span a branch.
  __device__ void advance(int step, typename P::Weights& p, typename P::Scores& scores,
                          typename P::Scores& next) {
    start_scores(next);
    start_values(p);
    make_weights(step, scores);
    ptx::wgmma_wait_group<0>(next);
    finish_values();
    rescale_out();
    round_weights(scores, p);
  }
  /// Waits for the sums of values, and releases the stage.
  __device__ void finish_values() {
    ptx::wgmma_wait_group<0>(out_);
    release(s_.empty[used_.stage]);
    used_.advance();
  }
  /// Rescales the sums so far to the maximum that the newest weights are relative to.
  __device__ void rescale_out() {
    if (!moved_) return;
#pragma unroll
    for (int n = 0; n < kDimBlocks + 1; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) out_[n][i] *= rescale_[i / 2];
    }
  }
  __device__ static void round_weights(const typename P::Scores& weights, typename P::Weights& p) {
#pragma unroll
    for (int k = 0; k < P::kKeys / 16; ++k) pack_operand(weights[2 * k], weights[2 * k + 1], p[k]);
  }
  /// Starts out += p v.
  __device__ void start_values(const typename P::Weights& p) {
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < P::kKeys / 16; ++k) {
      ptx::wgmma(out_, p[k], s_.steps[used_.stage].values.across_rows(k));
    }
    ptx::wgmma_commit_group();
  }
  /// Prepares for an item: loads the warp's 16 queries, into registers for the biases and into
  /// shared memory for the scores.
  __device__ void start(const Item& item) {
    std::uint32_t q[kDim / 16][4];
    const int tokens = work_.height * P::kWidth;
    first_query_ = item.first_query + warp_ * kWarpQueries;
    last_query_ = min(first_query_ + kWarpQueries, tokens) - 1;
    ptx::named_barrier_sync(kGroupBarrier + group_, kGroup);  // nobody multiplies the old ones
#pragma unroll
    for (int i = 0; i < kDim / 16 * 4; ++i) {
      const int in_warp = lane_ / 4 + 8 * (i % 2);
      const int dim = i / 2 * 8 + lane_ % 4 * 2;
      const int query = min(first_query_ + in_warp, tokens - 1);
      q[i / 4][i % 4] = *reinterpret_cast<const std::uint32_t*>(
          grid_row(work_, item.first_row + query, 0, item.head) + dim);
      auto* const to =
          s_.queries[group_].piece(warp_ % 4 * kWarpQueries + in_warp, i / 2) + lane_ % 4 * 4;
      *reinterpret_cast<std::uint32_t*>(to) = q[i / 4][i % 4];
    }
    ptx::fence_proxy_async();
    ptx::named_barrier_sync(kGroupBarrier + group_, kGroup);
    // Scores start from the column biases and are scaled later; row biases join the exponents.
    biases_.compute(q, first_query_, last_query_, work_.height, 1.0f / work_.scale, ptx::kLog2E,
                    columns_);
    maximum_[0] = maximum_[1] = -INFINITY;
#pragma unroll
    for (int n = 0; n < kDimBlocks + 1; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) out_[n][i] = 0.0f;
    }
  }

  /// Starts the scores of the next step in the ring.
  __device__ void start_scores(typename P::Scores& scores) {
#pragma unroll
    for (int n = 0; n < P::kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[n][i] = columns_[n % P::kColumnBlocks][i];
    }
    wait_for(s_.full[at_.stage], at_.phase);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
      ptx::wgmma(scores, s_.queries[group_].along_rows(k), s_.steps[at_.stage].keys.along_rows(k));
    }
    ptx::wgmma_commit_group();
    at_.advance();
  }

  /// Turns the scores of a step into weights, relative to a maximum that is at most kHeadroom below
  /// the true one.
  __device__ void make_weights(int step, typename P::Scores& scores) {
    float bias[2][P::kRows];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float maximum = maximum_[r];
#pragma unroll
      for (int k = 0; k < P::kRows; ++k) {
        bias[r][k] = biases_.of(r)[step * P::kRows + k];
        float in_row = scores[k * P::kColumnBlocks][2 * r];
#pragma unroll
        for (int n = k * P::kColumnBlocks; n < (k + 1) * P::kColumnBlocks; ++n) {
          in_row = fmaxf(in_row, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
        }
        maximum = fmaxf(maximum, fmaf(in_row, factor_, bias[r][k]));
      }
      maximum = quad_max(maximum);
      // Weights may grow to 2^kHeadroom before everything becomes relative to a new maximum.
      if (maximum <= maximum_[r] + kHeadroom) maximum = maximum_[r];
      rescale_[r] = ptx::exp2_fast(maximum_[r] - maximum);
      maximum_[r] = maximum;
    }
    moved_ = __any_sync(kAllLanes, rescale_[0] != 1.0f || rescale_[1] != 1.0f);
#pragma unroll
    for (int n = 0; n < P::kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float offset = bias[i / 2][n / P::kColumnBlocks] - maximum_[i / 2];
        scores[n][i] = exp2_in_order(fmaf(scores[n][i], factor_, offset));
      }
    }
  }

  /// Divides the warp's rows by their sums of weights and stores them.
  __device__ void store(const Item& item) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      // The sum is column 0 of its block, which the first lane of four holds.
      const float sum = __shfl_sync(kAllLanes, out_[kDimBlocks][2 * r], lane_ / 4 * 4);
      const float inverse = 1.0f / sum;
      const int query = first_query_ + lane_ / 4 + 8 * r;
      if (query > last_query_) continue;
      __nv_bfloat16* const out =
          reinterpret_cast<__nv_bfloat16*>(work_.out) +
          (std::int64_t{item.first_row + query} * work_.num_heads + item.head) * kDim +
          lane_ % 4 * 2;
#pragma unroll
      for (int n = 0; n < kDimBlocks; ++n) {
        *reinterpret_cast<std::uint32_t*>(out + n * 8) =
            pack_bf16(out_[n][2 * r] * inverse, out_[n][2 * r + 1] * inverse);
      }
    }
  }

  const GridWork& work_;
  Shared<P>& s_;
  WarpBiases<P> biases_;
  int group_;
  int warp_;
  int lane_;
  float factor_;
  int first_query_ = 0;  // of this warp, in the image
  int last_query_ = 0;   // that exists; before the first if none does
  typename P::Columns columns_ = {};
  typename P::Out out_ = {};
  float maximum_[2] = {};
  float rescale_[2] = {};
  bool moved_ = false;         // some rescale_ of the warp is not 1
  Position<P::kStages> at_;    // whose scores are started next
  Position<P::kStages> used_;  // whose values are multiplied, then released, next
};

}  // namespace fovea::cuda::grid_wgmma
