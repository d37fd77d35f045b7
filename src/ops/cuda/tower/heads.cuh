#pragma once

#include <cstdint>

#include "ops/cuda/ptx/ptx.cuh"
#include "ops/cuda/tower/packet.cuh"
#include "ops/cuda/tower/shared.cuh"

// Attention of some tiles of 16 queries of one head. The keys are spread over warps, each of which
// mixes the values of its own; what they have mixed is added up in shared memory. Packets of q and
// k are operands of mma.sync as they are, for dims in the order in which a rotation pairs them;
// those of v have been transposed.
namespace fovea::cuda {

template <class Sizes>
struct HeadAttention {
  static constexpr int kRowTiles = Sizes::kRowTiles;
  static constexpr int kSlices = Sizes::kHeadSlices;
  static constexpr int kKeyTiles = CtaShared<Sizes>::kKeyTiles;
  static constexpr int kKeyWarps = CtaShared<Sizes>::kKeyWarps;
  static constexpr int kWhole = kSlices / 2;  // steps of 16 dims
  static constexpr bool kRest = kSlices % 2 != 0;
  static constexpr int kPackets = static_cast<int>(sizeof(Packets));
  static constexpr float kNone = -1e30f;  // less than any score
  static constexpr int kTileStep = Sizes::kHead16 * kFragmentBytes;

  /// 16 rows of q, k or v.
  struct Rows {
    Packets whole[kWhole];
    Packet rest;

    __device__ void load(const std::byte* from) {
#pragma unroll
      for (int i = 0; i < kWhole; ++i) whole[i] = load_packets(from + i * kFragmentBytes);
      if constexpr (kRest) rest = load_packet(from + kWhole * kFragmentBytes);
    }
    __device__ void expect(Arrivals& arrivals) const {
#pragma unroll
      for (const Packets& packets : whole) arrivals.expect(packets);
      if constexpr (kRest) arrivals.expect(rest);
    }
  };
  using KeyRows = Rows[kKeyTiles];

  std::byte* mail;
  int head;
  int first;  ///< query tile
  int tiles;  ///< of queries
  int block;
  float scale;
  CtaShared<Sizes>& shared;
  Consumer<Sizes> self;

  [[nodiscard]] __device__ const std::byte* rows_of_head(int place, int row_tile) const {
    return mail + place + (head * kRowTiles + row_tile) * kTileStep + self.lane * kPackets;
  }
  __device__ static void load(KeyRows& rows, const std::byte* from) {
#pragma unroll
    for (int i = 0; i < kKeyTiles; ++i) rows[i].load(from + i * kTileStep);
  }
  [[nodiscard]] __device__ static bool arrived(const KeyRows& rows, std::uint32_t tag) {
    Arrivals arrivals(tag);
#pragma unroll
    for (const Rows& tile : rows) tile.expect(arrivals);
    return arrivals.complete();
  }
  [[nodiscard]] __device__ static bool arrived(const Rows& rows, std::uint32_t tag) {
    Arrivals arrivals(tag);
    rows.expect(arrivals);
    return arrivals.complete();
  }

  /// Scores of 16 queries and the warp's keys.
  __device__ static void score(const Rows& queries, const KeyRows& keys,
                               float (&scores)[kKeyTiles][2][4]) {
#pragma unroll
    for (int tile = 0; tile < kKeyTiles; ++tile) {
      auto& of_tile = scores[tile];
#pragma unroll
      for (auto& of_eight : of_tile)
#pragma unroll
        for (float& score : of_eight) score = 0;
#pragma unroll
      for (int i = 0; i < kWhole; ++i) {
        const std::uint32_t(&key)[4] = keys[tile].whole[i].word;
        ptx::multiply_add(of_tile[0], queries.whole[i].word, key[0], key[2]);
        ptx::multiply_add(of_tile[1], queries.whole[i].word, key[1], key[3]);
      }
      if constexpr (kRest) {
        const std::uint32_t rest[4] = {queries.rest.word[0], queries.rest.word[1], 0, 0};
        ptx::multiply_add(of_tile[0], rest, keys[tile].rest.word[0], 0);
        ptx::multiply_add(of_tile[1], rest, keys[tile].rest.word[1], 0);
      }
    }
  }

  /// Turns scores into weights relative to the largest of the warp's keys, which goes to shared
  /// memory with the weights and their sum. Keys of other sequences get no weight.
  __device__ void weigh(int tile, float (&scores)[kKeyTiles][2][4]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = self.lane / 4 + 8 * half;
      const int2 sequence = shared.sequence[16 * (first + tile) + row];
      const int first_key = 16 * kKeyTiles * self.warp + self.col;
      float largest = kNone;
#pragma unroll
      for (int i = 0; i < 4 * kKeyTiles; ++i) {
        const int key = first_key + i / 2 * 8 + i % 2;
        float& score = scores[i / 4][i / 2 % 2][2 * half + i % 2];
        score = key >= sequence.x && key < sequence.y ? score * (scale * ptx::kLog2E) : 2 * kNone;
        largest = fmaxf(largest, score);
      }
      largest = quad_max(largest);
      float sum = 0;
#pragma unroll
      for (int i = 0; i < 4 * kKeyTiles; ++i) {
        float& score = scores[i / 4][i / 2 % 2][2 * half + i % 2];
        score = ptx::exp2_fast(score - largest);
        sum += score;
      }
      sum = quad_sum(sum);
      if (self.lane % 4 == 0) {
        shared.maximum[tile][row][self.warp] = largest;
        shared.sum[tile][row][self.warp] = sum;
      }
    }
#pragma unroll
    for (int i = 0; i < kKeyTiles; ++i) {
      Bf16Pair weights[4];
      pack_operand(scores[i][0], scores[i][1], weights);
      shared.weights[tile][self.warp][i][self.lane] =
          make_uint4(weights[0], weights[1], weights[2], weights[3]);
    }
  }

  /// Mixes the values of the warp's keys, relative to the largest score of all keys.
  __device__ void mix(int tile, const KeyRows& values) const {
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = self.lane / 4 + 8 * half;
      float largest = kNone;
#pragma unroll
      for (int i = 0; i < kKeyWarps; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(&shared.maximum[tile][row][i]);
        largest = fmaxf(largest, fmaxf(fmaxf(four.x, four.y), fmaxf(four.z, four.w)));
      }
      factor[half] = ptx::exp2_fast(shared.maximum[tile][row][self.warp] - largest);
      if (self.lane % 4 == 0) shared.sum[tile][row][self.warp] *= factor[half];
    }
    std::uint32_t weights[kKeyTiles][4];
#pragma unroll
    for (int i = 0; i < kKeyTiles; ++i) {
      const uint4 four = shared.weights[tile][self.warp][i][self.lane];
      weights[i][0] = four.x;
      weights[i][1] = four.y;
      weights[i][2] = four.z;
      weights[i][3] = four.w;
    }
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice) {
      float mixed[4] = {};
#pragma unroll
      for (int i = 0; i < kKeyTiles; ++i) {
        if (slice / 2 == kWhole) {
          ptx::multiply_add(mixed, weights[i], values[i].rest.word[0], values[i].rest.word[1]);
        } else {
          const std::uint32_t(&pair)[4] = values[i].whole[slice / 2].word;
          ptx::multiply_add(mixed, weights[i], pair[slice % 2 * 2], pair[slice % 2 * 2 + 1]);
        }
      }
      shared.mixed[self.warp][slice][self.lane] = make_float4(
          mixed[0] * factor[0], mixed[1] * factor[0], mixed[2] * factor[1], mixed[3] * factor[1]);
    }
  }

  /// Adds up what the warps have mixed, and publishes it as rows for proj.
  __device__ void add_up(int tile, std::uint32_t tag) const {
    float share[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = self.lane / 4 + 8 * half;
      float sum = 0;
#pragma unroll
      for (int i = 0; i < kKeyWarps; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(&shared.sum[tile][row][i]);
        sum += (four.x + four.y) + (four.z + four.w);
      }
      share[half] = sum > 0 ? ptx::reciprocal_fast(sum) : 0;  // a row of no sequence has none
    }
    std::byte* const to =
        mail + Sizes::kMixed + (first + tile) * kFragmentBytes + self.lane * kPackets;
#pragma unroll 1
    for (int slice = self.warp; slice < kSlices; slice += kConsumerWarps) {
      float out[4] = {};
#pragma unroll
      for (int warp = 0; warp < kKeyWarps; ++warp) {
        const float4 part = shared.mixed[warp][slice][self.lane];
        out[0] += part.x;
        out[1] += part.y;
        out[2] += part.z;
        out[3] += part.w;
      }
      store_packet(to + slice_offset<Sizes>(head * kSlices + slice),
                   tagged_pair(out[0] * share[0], out[1] * share[0], tag),
                   pack_bf16(out[2] * share[1], out[3] * share[1]));
    }
  }

  /// Weights of the warp's keys for all queries. Loads values, too.
  __device__ void weigh_keys(const BlockTags& tags, KeyRows& values) const {
    const int place = block % 2 * Sizes::kHeadBytes;
    const std::byte* const keys_from = rows_of_head(Sizes::kKeys + place, kKeyTiles * self.warp);
    const std::byte* const values_from = keys_from + (Sizes::kValues - Sizes::kKeys);
    const std::byte* queries_from = rows_of_head(Sizes::kQueries, first);
    // Values of several tiles do not fit into registers before the keys have been used.
    constexpr bool kAllAtOnce = kKeyTiles == 1;
    KeyRows keys;
    Rows queries;
    do {
      load(keys, keys_from);
      queries.load(queries_from);
      if (kAllAtOnce) load(values, values_from);
    } while (!arrived(keys, tags.heads) || (kAllAtOnce && !arrived(values, tags.heads)));
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
      while (!arrived(queries, tags.rows)) queries.load(queries_from);
      float scores[kKeyTiles][2][4];
      score(queries, keys, scores);
      queries_from += kTileStep;
      if (tile + 1 < tiles) queries.load(queries_from);
      weigh(tile, scores);
    }
    if constexpr (!kAllAtOnce) {
      do {
        load(values, values_from);
      } while (!arrived(values, tags.heads));
    }
  }

  /// For all consumers.
  __device__ void run() const {
    const BlockTags tags(block);
    const bool has_keys = kKeyWarps == kConsumerWarps || self.warp < kKeyWarps;
    KeyRows values{};
    if (has_keys) weigh_keys(tags, values);
    ptx::named_barrier_sync(kConsumerBarrier, kConsumers);
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
      if (has_keys) mix(tile, values);
      ptx::named_barrier_sync(kConsumerBarrier, kConsumers);
      add_up(tile, tags.rows);
      if (tile + 1 < tiles) ptx::named_barrier_sync(kConsumerBarrier, kConsumers);
    }
  }
};

}  // namespace fovea::cuda
