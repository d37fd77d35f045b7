#pragma once

// How the CTAs of a cluster share the sum of a tile: each sends its part of the rows of another
// to that one, which adds them up in the order of the CTAs and stores them.

#include "ops/cuda/gemm/hopper/epilogue.cuh"

namespace fovea::cuda::gemm {

/// What lane `lane` holds; for a whole warp.
__device__ inline Bf16x8 vector_of_lane(const Bf16x8& mine, int lane) {
  Bf16x8 theirs;
#pragma unroll
  for (int i = 0; i < kVector / 2; ++i) theirs.pair[i] = __shfl_sync(kAllLanes, mine.pair[i], lane);
  return theirs;
}

__device__ inline void add_vector(const Bf16x8& more, float (&values)[kVector]) {
#pragma unroll
  for (int i = 0; i < kVector / 2; ++i) {
    const float2 two = unpack_bf16(more.pair[i]);
    values[2 * i] += two.x;
    values[2 * i + 1] += two.y;
  }
}

/// Eight floats of a row in shared memory. Lanes read halves in an order that spreads them over
/// the banks.
__device__ inline void load_sums(const float* from, float (&values)[kVector]) {
  const int first = static_cast<int>(threadIdx.x) & 4;
  const float4 a = *reinterpret_cast<const float4*>(from + first);
  const float4 b = *reinterpret_cast<const float4*>(from + (first ^ 4));
  const float4 low = first == 0 ? a : b;
  const float4 high = first == 0 ? b : a;
  values[0] = low.x, values[1] = low.y, values[2] = low.z, values[3] = low.w;
  values[4] = high.x, values[5] = high.y, values[6] = high.z, values[7] = high.w;
}

/// Writes the sums of 8 columns of 16 rows of a warp; `to` points at the first row and column.
__device__ inline void spread_sums(const float (&sums)[4], float* to, int stride, int lane) {
  float* const place = to + lane / 4 * stride + lane % 4 * 2;
  *reinterpret_cast<float2*>(place) = {sums[0], sums[1]};
  *reinterpret_cast<float2*>(place + 8 * stride) = {sums[2], sums[3]};
}

/// The rows of a tile that one CTA of its cluster adds up and stores.
template <class P>
struct TileShare {
  __device__ TileShare(int splits, int slice)
      : rows_each((P::kRows + splits - 1) / splits),
        first(slice * rows_each),
        rows(min(rows_each, P::kRows - first)) {}
  int rows_each;
  int first;
  int rows;
  [[nodiscard]] __device__ int bytes() const {
    return rows * P::kTileStride * static_cast<int>(sizeof(float));
  }
};

/// Stores the part of a tile that falls to this CTA.
template <class P>
class SplitStore {
 public:
  __device__ SplitStore(const HopperGemmWork& w, Shared<P>& s, const CtaInCluster<P>& cta)
      : w_(w), s_(s), cta_(cta) {}

  /// Asks for the bias of the tile that begins at (row, col).
  __device__ void prepare(int /*row*/, int col, int /*live*/) {
    static_assert(P::kCols <= kWarp * kVector);
    const int c = static_cast<int>(threadIdx.x) % kWarp * kVector;
    const bool has = w_.bias != nullptr && c < P::kCols && col + c < w_.out_features;
    bias_ = has ? vector_at<Bf16x8>(w_.bias, col + c) : Bf16x8{};
  }
  /// The tile begins at (row, col).
  __device__ void begin(int row, int col, int live) {
    row_ = row;
    col_ = col;
    live_ = live;
  }
  __device__ static void finish_sums(typename P::Sums&) {}  // they are not whole yet
  __device__ void store(const typename P::Sums& sums) const {
    send_parts(sums);
    store_share();
  }
  static __device__ void finish() {}

 private:
  static constexpr int kVectors = P::kCols / kVector;  // of a row

  /// Where a CTA gathers its sums of a tile: the stages have been read by then.
  [[nodiscard]] __device__ float* gathered_sums() const {
    static_assert(sizeof(float) * P::kRows * P::kTileStride <= sizeof(s_.x) + sizeof(s_.weight));
    return reinterpret_cast<float*>(&s_);
  }
  /// Where those of the other CTAs arrive.
  [[nodiscard]] __device__ float* parts() const { return reinterpret_cast<float*>(s_.out); }
  /// The share of the sums that came from the CTA of slice `part`.
  [[nodiscard]] __device__ const float* sums_of(int part, const TileShare<P>& share) const {
    return part == cta_.slice ? gathered_sums() + share.first * P::kTileStride
                              : parts() + part * share.rows_each * P::kTileStride;
  }

  /// Sends every other CTA that shares the tile its share of this CTA's sums, in one piece:
  /// stores from registers would each count on the other's barrier.
  __device__ void send_parts(const typename P::Sums& sums) const {
    float* const tile = gathered_sums();
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = ptx::lane();
    ptx::named_barrier_sync(kConsumersBarrier, P::kConsumers);  // all have read the stages
#pragma unroll
    for (int unit = 0; unit < P::kUnits; ++unit) {
      float* const rows = tile + (P::first_row_of_warp() + unit * kUnitRows) * P::kTileStride;
#pragma unroll
      for (int n = 0; n < P::kCols / 8; ++n)
        spread_sums(sums[unit][n], rows + n * 8, P::kTileStride, lane);
    }
    ptx::fence_proxy_async();  // makes them visible to TMA
    ptx::named_barrier_sync(kConsumersBarrier, P::kConsumers);
    if (thread >= w_.splits || thread == cta_.slice) return;
    const TileShare<P> theirs(w_.splits, thread);
    const int to = cta_.rank_of_slice(thread);
    ptx::copy_to_cta(
        ptx::address_in_cta(
            ptx::shared_address(parts() + cta_.slice * theirs.rows_each * P::kTileStride), to),
        ptx::shared_address(tile + theirs.first * P::kTileStride), theirs.bytes(),
        ptx::address_in_cta(ptx::shared_address(&s_.parts), to));
  }

  /// Adds up the share of this CTA in the order of the CTAs and stores it.
  __device__ void store_share() const {
    const TileShare<P> share(w_.splits, cta_.slice);
    const int first_row = row_ + share.first;
    const int rows = min(share.rows, live_ - first_row);
    const auto has = [&](int i) {
      return i < rows * kVectors && col_ + i % kVectors * kVector < w_.out_features;
    };
    const auto residual_of = [&](int i) {
      if (w_.residual == nullptr || !has(i)) return Bf16x8{};
      const std::int64_t row = first_row + i / kVectors;
      return vector_at<Bf16x8>(w_.residual, row * w_.out_features + col_ + i % kVectors * kVector);
    };
    int i = static_cast<int>(threadIdx.x);
    Bf16x8 residual = residual_of(i);
    ptx::barrier_wait(ptx::shared_address(&s_.parts), 0);
    __syncwarp();
    ptx::cluster_arrive();  // this CTA needs nothing more from the others
#pragma unroll 1
    for (; i - static_cast<int>(threadIdx.x) % kWarp < share.rows * kVectors; i += P::kConsumers) {
      const Bf16x8 next = residual_of(i + P::kConsumers);
      const Bf16x8 added = vector_of_lane(bias_, i % kVectors);
      if (has(i)) {
        float values[kVector] = {};
        for (int part = 0; part < w_.splits; ++part) {
          float more[kVector];
          load_sums(sums_of(part, share) + i / kVectors * P::kTileStride + i % kVectors * kVector,
                    more);
#pragma unroll
          for (int j = 0; j < kVector; ++j) values[j] += more[j];
        }
        if constexpr (P::kFp8) scale(first_row + i / kVectors, i % kVectors, values);
        add_vector(added, values);
        activate(w_.activation, values);
        add_vector(residual, values);
        const Bf16x8 rounded = {pack_bf16(values[0], values[1]), pack_bf16(values[2], values[3]),
                                pack_bf16(values[4], values[5]), pack_bf16(values[6], values[7])};
        store_vector(w_, first_row + i / kVectors, col_ + i % kVectors * kVector, rounded);
      }
      residual = next;
    }
    __syncwarp();
    ptx::cluster_wait();  // no CTA ends while its sums are on their way to another
  }

  /// Of vector number `vector` of a row of the tile.
  __device__ void scale(int row, int vector, float (&values)[kVector]) const {
    const float of_row = w_.scales.x[row];
    const float* const of_cols = w_.scales.weight + col_ + vector * kVector;
#pragma unroll
    for (int j = 0; j < kVector; ++j) values[j] *= of_row * of_cols[j];
  }

  const HopperGemmWork& w_;
  Shared<P>& s_;
  const CtaInCluster<P>& cta_;
  int live_ = 0;
  int row_ = 0;
  int col_ = 0;
  Bf16x8 bias_;  // of columns [8 lane, 8 lane + 8) of the tile
};

}  // namespace fovea::cuda::gemm
