#pragma once

#include <cstdint>

#include "ops/cuda/blocks/packet.cuh"
#include "ops/cuda/blocks/shared.cuh"
#include "ops/cuda/ptx/ptx.cuh"

// Attention of 16 queries of one head. Each warp of the first group takes 16 of the 64 keys; all
// threads add up what these have mixed. Packets of q and k are operands of mma.sync as they are,
// for dims in the order in which a rotation pairs them; those of v have been transposed.
namespace fovea::cuda {

/// Weights of 16 keys, unnormalised, and the values they mix, for the thread's part of 16 queries.
template <class Sizes>
__device__ inline void mix_values(const std::byte* mail, int head, int query_tile, float scale,
                                  std::uint32_t tag, BlockShared<Sizes>& shared,
                                  const Consumer& self) {
  constexpr int kWhole = Sizes::kHeadSlices / 2;  // steps of 16 dims
  constexpr bool kRest = Sizes::kHeadSlices % 2 != 0;
  constexpr int kTileBytesOfHead = Sizes::kHead16 * kFragmentBytes;
  constexpr int kPackets = static_cast<int>(sizeof(Packets));
  const std::byte* const query_from = mail + Sizes::kQueries +
                                      (head * kRowTiles + query_tile) * kTileBytesOfHead +
                                      self.lane * kPackets;
  const std::byte* const key_from = mail + Sizes::kKeys +
                                    (head * kRowTiles + self.row_tile) * kTileBytesOfHead +
                                    self.lane * kPackets;
  const std::byte* const value_from =
      mail + Sizes::kValues +
      (head * kRowTiles + self.row_tile) * Sizes::kHeadSlices * (kFragmentBytes / 2) +
      self.lane * static_cast<int>(sizeof(Packet));
  Packets queries[kWhole];
  Packets keys[kWhole];
  Packet rest_queries{{tag, 0}};
  Packet rest_keys{{tag, 0}};
  Packet values[Sizes::kHeadSlices];
  while (true) {
    Arrivals arrivals(tag);
#pragma unroll
    for (int i = 0; i < kWhole; ++i) {
      queries[i] = load_packets(query_from + i * kFragmentBytes);
      keys[i] = load_packets(key_from + i * kFragmentBytes);
    }
    if constexpr (kRest) {
      rest_queries = load_packet(query_from + kWhole * kFragmentBytes);
      rest_keys = load_packet(key_from + kWhole * kFragmentBytes);
    }
#pragma unroll
    for (int i = 0; i < Sizes::kHeadSlices; ++i)
      values[i] = load_packet(value_from + i * (kFragmentBytes / 2));
#pragma unroll
    for (int i = 0; i < kWhole; ++i) {
      arrivals.expect(queries[i]);
      arrivals.expect(keys[i]);
    }
    arrivals.expect(rest_queries);
    arrivals.expect(rest_keys);
#pragma unroll
    for (const Packet& value : values) arrivals.expect(value);
    if (arrivals.complete()) break;
  }

  float scores[2][4] = {};  // of keys 0 to 7 and 8 to 15
#pragma unroll
  for (int i = 0; i < kWhole; ++i) {
    ptx::multiply_add(scores[0], queries[i].word, keys[i].word[0], keys[i].word[2]);
    ptx::multiply_add(scores[1], queries[i].word, keys[i].word[1], keys[i].word[3]);
  }
  if constexpr (kRest) {
    const std::uint32_t rest[4] = {rest_queries.word[0], rest_queries.word[1], 0, 0};
    ptx::multiply_add(scores[0], rest, rest_keys.word[0], 0);
    ptx::multiply_add(scores[1], rest, rest_keys.word[1], 0);
  }

  // Exponents of 2; keys of other sequences get no weight.
  const float minus_infinity = __int_as_float(static_cast<int>(0xff800000u));
  float largest[2] = {minus_infinity, minus_infinity};  // of the thread's two rows
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const int2 sequence = shared.sequence[16 * query_tile + self.lane / 4 + 8 * row];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = 16 * self.row_tile + i / 2 * 8 + self.col + i % 2;
      float& score = scores[i / 2][2 * row + i % 2];
      score =
          key >= sequence.x && key < sequence.y ? score * (scale * ptx::kLog2E) : minus_infinity;
      largest[row] = fmaxf(largest[row], score);
    }
    largest[row] = quad_max(largest[row]);
    if (self.lane % 4 == 0) shared.maximum[self.row_tile][self.lane / 4 + 8 * row] = largest[row];
  }
  ptx::named_barrier_sync(kAttentionBarrier, kGroup);
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float maximum = minus_infinity;
#pragma unroll
    for (const auto& of_keys : shared.maximum)
      maximum = fmaxf(maximum, of_keys[self.lane / 4 + 8 * row]);
    if (maximum == minus_infinity) maximum = 0;  // a row of no sequence
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float& score = scores[i / 2][2 * row + i % 2];
      score = ptx::exp2_fast(score - maximum);
      sum += score;
    }
    sum = quad_sum(sum);
    if (self.lane % 4 == 0) shared.sum[self.row_tile][self.lane / 4 + 8 * row] = sum;
  }
  Bf16Pair weights[4];
  pack_operand(scores[0], scores[1], weights);
#pragma unroll
  for (int i = 0; i < Sizes::kHeadSlices; ++i) {
    float mixed[4] = {};
    ptx::multiply_add(mixed, weights, values[i].word[0], values[i].word[1]);
    shared.mixed[self.row_tile][i][self.lane] = make_float4(mixed[0], mixed[1], mixed[2], mixed[3]);
  }
}

/// Attention of 16 queries; publishes mixed values as rows for proj.
template <class Sizes>
__device__ inline void attend(std::byte* mail, int head, int query_tile, float scale,
                              std::uint32_t tag, BlockShared<Sizes>& shared, const Consumer& self) {
  if (self.group == 0) mix_values<Sizes>(mail, head, query_tile, scale, tag, shared, self);
  ptx::named_barrier_sync(kConsumerBarrier, kConsumers);
  std::byte* const to = mail + Sizes::kMixed + query_tile * kFragmentBytes;
  for (int packet = static_cast<int>(threadIdx.x); packet < Sizes::kHeadSlices * kWarp;
       packet += kConsumers) {
    const int slice = packet / kWarp;
    const int lane = packet % kWarp;
    float mixed[4] = {};
    float sum[2] = {};
#pragma unroll
    for (int tile = 0; tile < kRowTiles; ++tile) {
      const float4 part = shared.mixed[tile][slice][lane];
      mixed[0] += part.x;
      mixed[1] += part.y;
      mixed[2] += part.z;
      mixed[3] += part.w;
      sum[0] += shared.sum[tile][lane / 4];
      sum[1] += shared.sum[tile][lane / 4 + 8];
    }
    const float scale0 = sum[0] > 0 ? ptx::reciprocal_fast(sum[0]) : 0;
    const float scale1 = sum[1] > 0 ? ptx::reciprocal_fast(sum[1]) : 0;
    store_packet(to + slice_offset(head * Sizes::kHeadSlices + slice) +
                     lane * static_cast<int>(sizeof(Packets)),
                 tagged_pair(mixed[0] * scale0, mixed[1] * scale0, tag),
                 pack_bf16(mixed[2] * scale1, mixed[3] * scale1));
  }
}

}  // namespace fovea::cuda
