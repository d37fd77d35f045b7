#pragma once

#include <cstdint>

#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/ptx/ptx.cuh"

// Numbers on their way from one CTA to others carry the news that they have arrived.
//
// A packet is eight bytes, four bf16 or two f32, which the GPU loads and stores as one. The last
// bit of its first number is the packet's tag. Memory for packets is written once per block of the
// tower, with tags that alternate: 1 in the first block, over zeros. Who waits for numbers loads
// them until their tags are those of the block. So no number is read because of another one, which
// would take a fence, a flag, and two more trips to the L2 cache, and relaxed accesses suffice.
//
// Nobody overwrites what others have yet to read, because rows behind the next norm depend on
// attention, which depends on all rows before it, and so on around the block. Only keys and values
// need two places, for blocks in turn: other rows than those of their next block may be behind, and
// still attend to them.
//
// The tag costs the number its last bit: it is rounded to the nearest one that ends in the tag.
namespace fovea::cuda {

/// Tags of a block of the tower.
struct BlockTags {
  std::uint32_t rows;   ///< and queries, and statistics
  std::uint32_t heads;  ///< keys and values, which have two places

  __device__ explicit BlockTags(int block)
      : rows(block % 2 == 0 ? 1 : 0), heads(block / 2 % 2 == 0 ? 1 : 0) {}
};

/// Two packets that lie side by side.
struct Packets {
  std::uint32_t word[4];
};
/// One packet.
struct Packet {
  std::uint32_t word[2];
};

__device__ inline Packets load_packets(const std::byte* from) {
  Packets p;
  asm volatile(
      "{.reg .b64 a, b; ld.relaxed.gpu.global.v2.b64 {a, b}, [%4];\n"
      "mov.b64 {%0, %1}, a; mov.b64 {%2, %3}, b;}"
      : "=r"(p.word[0]), "=r"(p.word[1]), "=r"(p.word[2]), "=r"(p.word[3])
      : "l"(from));
  return p;
}
__device__ inline Packet load_packet(const std::byte* from) {
  Packet p;
  asm volatile("{.reg .b64 a; ld.relaxed.gpu.global.b64 a, [%2]; mov.b64 {%0, %1}, a;}"
               : "=r"(p.word[0]), "=r"(p.word[1])
               : "l"(from));
  return p;
}
__device__ inline void store_packet(std::byte* to, std::uint32_t first, std::uint32_t second) {
  asm volatile("{.reg .b64 a; mov.b64 a, {%1, %2}; st.relaxed.gpu.global.b64 [%0], a;}" ::"l"(to),
               "r"(first), "r"(second));
}
/// Two packets in the shared memory of a CTA of the cluster; addresses of ptx::address_in_cta.
__device__ inline void store_packets_in_cta(std::uint32_t to, const Packets& p) {
  asm volatile(
      "{.reg .b64 a, b; mov.b64 a, {%1, %2}; mov.b64 b, {%3, %4};\n"
      "st.relaxed.cluster.shared::cluster.v2.b64 [%0], {a, b};}" ::"r"(to),
      "r"(p.word[0]), "r"(p.word[1]), "r"(p.word[2]), "r"(p.word[3]));
}
/// What store_packets_in_cta has stored in this CTA.
__device__ inline Packets load_packets_of_cta(std::uint32_t from) {
  Packets p;
  asm volatile(
      "{.reg .b64 a, b; ld.relaxed.cluster.shared::cta.v2.b64 {a, b}, [%4];\n"
      "mov.b64 {%0, %1}, a; mov.b64 {%2, %3}, b;}"
      : "=r"(p.word[0]), "=r"(p.word[1]), "=r"(p.word[2]), "=r"(p.word[3])
      : "r"(from));
  return p;
}

/// Collects whether packets have arrived, one instruction each. (The compiler, which sees that tags
/// are single bits, would compare one by one.)
class Arrivals {
 public:
  __device__ explicit Arrivals(std::uint32_t tag) : tag_(tag) {}
  __device__ void expect(std::uint32_t first_word) {
    asm volatile("lop3.b32 %0, %1, %2, %0, 0xbe;"  // missing |= first_word ^ tag
                 : "+r"(missing_)
                 : "r"(first_word), "r"(tag_));
  }
  __device__ void expect(const Packet& p) { expect(p.word[0]); }
  __device__ void expect(const Packets& p) {
    expect(p.word[0]);
    expect(p.word[2]);
  }
  /// Whether all have, in all lanes of the warp.
  [[nodiscard]] __device__ bool complete() const {
    return __all_sync(kAllLanes, (missing_ & 1) == 0);
  }

 private:
  std::uint32_t tag_;
  std::uint32_t missing_ = 0;
};

/// Two numbers as bf16, the first rounded to the nearest that ends in the tag.
__device__ inline Bf16Pair tagged_pair(float low, float high, std::uint32_t tag) {
  const std::uint32_t offset = tag << 16;
  const std::uint32_t low_bits =
      ((__float_as_uint(low) - offset + 0x10000u) & 0xfffe0000u) + offset;
  return __byte_perm(low_bits, pack_bf16(high, high), 0x7632);
}
/// Two bf16 numbers, the first with the tag for its last bit.
__device__ inline Bf16Pair tagged(Bf16Pair pair, std::uint32_t tag) { return (pair & ~1u) | tag; }
/// An f32 with the tag for its last bit.
__device__ inline std::uint32_t tagged(float value, std::uint32_t tag) {
  return (__float_as_uint(value) & ~1u) | tag;
}

}  // namespace fovea::cuda
