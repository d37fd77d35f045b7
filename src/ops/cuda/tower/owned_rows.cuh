#pragma once

#include <cstdint>

#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/ptx/tma.cuh"
#include "ops/cuda/tower/constants.cuh"
#include "ops/cuda/tower/multiply.cuh"
#include "ops/cuda/tower/packet.cuh"
#include "ops/cuda/tower/role.cuh"
#include "ops/cuda/tower/shared.cuh"

// The rows of x that a CTA owns. They are spread over all its warps: each has some slices
// of one of the tiles of 16 rows, in shared memory, to which it adds sums, and which it publishes
// for the next norm.
namespace fovea::cuda {

template <class Sizes>
struct OwnedRows {
  static constexpr int kOwnersOfTile = kConsumerWarps / Sizes::kOwnedRowTiles;
  static constexpr int kSlices = (Sizes::kTileSlices + kOwnersOfTile - 1) / kOwnersOfTile;

  const BlocksWork& work;
  CtaMemory<Sizes>& memory;
  const CtaRole<Sizes>& role;
  const Consumer<Sizes>& self;
  ColumnConstants<Sizes> constants{memory, self};

  [[nodiscard]] __device__ int tile() const { return self.warp / kOwnersOfTile; }
  /// Of the group's columns. The last one may not exist: see CtaRole::owned_slices().
  [[nodiscard]] __device__ int slice_number(int i) const {
    return self.warp % kOwnersOfTile + i * kOwnersOfTile;
  }
  /// Of all row tiles.
  [[nodiscard]] __device__ int row_tile() const {
    return role.first_row_tile() + role.split() * Sizes::kOwnedRowTiles + tile();
  }
  /// Two neighbours in each of two rows.
  [[nodiscard]] __device__ float4& x(int slice) const {
    return memory.shared.x[tile()][slice][self.lane];
  }
  /// Calls visit(x of a slice, 0 or 1, offset in rows of memory) for all that the thread owns in
  /// live rows: two neighbours each.
  template <class Visit>
  __device__ void for_pairs(Visit visit) const {
    const auto rows = static_cast<int>(live_rows(work.live_rows, work.capacity));
    for (int i = 0; i < kSlices; ++i) {
      const int slice = slice_number(i);
      const int column = Sizes::kTileCols * role.group() + 8 * slice + self.col;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = 16 * row_tile() + self.lane / 4 + 8 * half;
        if (slice < role.owned_slices() && row < rows)
          visit(x(slice), half, static_cast<std::int64_t>(row) * Sizes::kWidth + column);
      }
    }
  }
  /// Loads and publishes x. Rows that nobody has sent are zeros.
  __device__ void load() const {
    constants.fetch(work.block[0].entry + Sizes::kTileCols * role.group());
    for (int i = 0; i < kSlices; ++i)
      if (slice_number(i) < Sizes::kTileSlices) x(slice_number(i)) = make_float4(0, 0, 0, 0);
    for_pairs([&](float4& own, int half, std::int64_t offset) {
      const float2 two = unpack_bf16(*reinterpret_cast<const Bf16Pair*>(work.x + offset));
      reinterpret_cast<float2*>(&own)[half] = two;
    });
    constants.wait();
    Publisher publisher{*this, 0, BlockTags(0).rows};
    for (int i = 0; i < kSlices; ++i)
      if (const int slice = slice_number(i); slice < role.owned_slices())
        publisher.slice(slice, x(slice), constants.of_slice(slice));
    publisher.statistics();
  }
  __device__ void store(__nv_bfloat16* to) const {
    for_pairs([&](const float4& own, int half, std::int64_t offset) {
      const float2 two = reinterpret_cast<const float2*>(&own)[half];
      *reinterpret_cast<Bf16Pair*>(to + offset) = pack_bf16(two.x, two.y);
    });
  }

  /// Publishes x, slice by slice, times gamma, for the GEMM behind a norm.
  struct Publisher {
    const OwnedRows& of;
    int norm;
    std::uint32_t tag;
    float sum[2] = {};
    float squares[2] = {};

    /// `two`: constants of the GEMM before, or of the entry.
    __device__ void slice(int number, const float4& own, const float4& two) {
      std::byte* const to = of.work.mail + (norm == 0 ? Sizes::kX1 : Sizes::kX2) +
                            of.row_tile() * kFragmentBytes +
                            of.self.lane * static_cast<int>(sizeof(Packets));
      store_packet(to + slice_offset<Sizes>(of.role.group(), number),
                   tagged_pair(own.x * two.y, own.y * two.w, tag),
                   pack_bf16(own.z * two.y, own.w * two.w));
      sum[0] += own.x + own.y;
      sum[1] += own.z + own.w;
      squares[0] += own.x * own.x + own.y * own.y;
      squares[1] += own.z * own.z + own.w * own.w;
    }
    /// For all warps of a row tile.
    __device__ void statistics() {
      auto& parts = of.memory.shared.stat[norm];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        sum[half] = quad_sum(sum[half]);
        squares[half] = quad_sum(squares[half]);
        if (of.self.lane % 4 == 0)
          parts[of.self.warp][of.self.lane / 4 + 8 * half] = make_float2(sum[half], squares[half]);
      }
      ptx::named_barrier_sync(kOwnerBarrier + of.tile(), kOwnersOfTile * kWarp);
      if (of.self.warp % kOwnersOfTile != 0 || of.self.lane >= 16) return;
      float2 all = {};
#pragma unroll
      for (int warp = 0; warp < kOwnersOfTile; ++warp) {
        const float2 part = parts[of.self.warp + warp][of.self.lane];
        all.x += part.x;
        all.y += part.y;
      }
      store_packet(of.work.mail + (norm == 0 ? Sizes::kStats1 : Sizes::kStats2) +
                       (16 * of.row_tile() + of.self.lane) * Sizes::kRowStatBytes +
                       of.role.group() * static_cast<int>(sizeof(Packet)),
                   tagged(all.x, tag), __float_as_uint(all.y));
    }
  };

  /// Sends quarters of sums to the owners of their rows, adds up those of its own rows, and
  /// publishes x for the next norm.
  __device__ void add(const TileSums<Sizes>& sums, int norm, int block) const {
    // Both GEMMs of a block use the same place: whoever has sums of fc2 has got x behind proj.
    const std::uint32_t tag = norm == 0 ? 1 : 0;
    auto& parts = memory.shared.parts;
    const auto& to = parts[role.split()][self.row_tile % Sizes::kOwnedRowTiles];
    const std::uint32_t to_owner =
        ptx::address_in_cta(ptx::shared_address(&to[self.first_slice()][self.lane]),
                            self.row_tile / Sizes::kOwnedRowTiles);
#pragma unroll
    for (int i = 0; i < Sizes::kFinished; ++i) {
      // Nobody waits for others, and then the CTA that they go to may have ended.
      if (self.first_slice() + i >= role.owned_slices()) continue;
      store_packets_in_cta(to_owner + i * static_cast<int>(sizeof(to[0])),
                           {tagged(sums[i][0], tag), __float_as_uint(sums[i][1]),
                            tagged(sums[i][2], tag), __float_as_uint(sums[i][3])});
    }

    Publisher publisher{*this, 1 - norm, BlockTags(block + norm).rows};
#pragma unroll
    for (int i = 0; i < kSlices; ++i) {
      const int slice = slice_number(i);
      if (slice >= role.owned_slices()) continue;
      const std::uint32_t from = ptx::shared_address(&parts[0][tile()][slice][self.lane]);
      Packets received[kSplits];
      while (true) {
        Arrivals arrivals(tag);
#pragma unroll
        for (int sender = 0; sender < kSplits; ++sender) {
          received[sender] =
              load_packets_of_cta(from + sender * static_cast<int>(sizeof(parts[0])));
          arrivals.expect(received[sender]);
        }
        if (arrivals.complete()) break;
      }
      const float4 two = constants.of_slice(slice);
      float added[4] = {two.x, two.z, two.x, two.z};
#pragma unroll
      for (const Packets& part : received)
#pragma unroll
        for (int value = 0; value < 4; ++value) added[value] += __uint_as_float(part.word[value]);
      float4& own = x(slice);
      own = make_float4(own.x + added[0], own.y + added[1], own.z + added[2], own.w + added[3]);
      publisher.slice(slice, own, two);
    }
    publisher.statistics();
  }
};

}  // namespace fovea::cuda
