#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace fovea::cuda {

/// Two bf16 values in one register, the first in the lower half. CUDA's own pair type has
/// constructors, which keep the compiler from loading or storing several pairs with one access.
using Bf16Pair = std::uint32_t;

inline constexpr Bf16Pair kBf16One = 0x3f80u;  ///< and a zero behind it

/// Eight bf16 values, loaded and stored with one 16-byte access.
struct alignas(16) Bf16x8 {
  Bf16Pair pair[4];
};

/// Four bf16 values, loaded and stored with one 8-byte access.
struct alignas(8) Bf16x4 {
  Bf16Pair pair[2];
};

template <int kWidth>
struct Bf16Vector;
template <>
struct Bf16Vector<8> {
  using Type = Bf16x8;
};
template <>
struct Bf16Vector<4> {
  using Type = Bf16x4;
};

/// Widens a pair, exactly.
__device__ inline float2 unpack_bf16(Bf16Pair pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
}
/// Rounds two values to nearest even.
__device__ inline Bf16Pair pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const Bf16Pair&>(pair);
}

/// Two blocks of eight columns of a tensor core's sums, rounded to bf16 in the layout of the left
/// operand of the next instruction.
__device__ inline void pack_operand(const float (&left)[4], const float (&right)[4],
                                    Bf16Pair (&operand)[4]) {
  operand[0] = pack_bf16(left[0], left[1]);
  operand[1] = pack_bf16(left[2], left[3]);
  operand[2] = pack_bf16(right[0], right[1]);
  operand[3] = pack_bf16(right[2], right[3]);
}

/// values[i] = from[i] for kWidth elements; `from` is aligned to kWidth elements.
template <int kWidth>
__device__ inline void load_floats(const __nv_bfloat16* from, float (&values)[kWidth]) {
  if constexpr (kWidth == 1) {
    values[0] = __bfloat162float(*from);
  } else {
    using Vector = typename Bf16Vector<kWidth>::Type;
    const Vector packed = *reinterpret_cast<const Vector*>(from);
#pragma unroll
    for (int i = 0; i < kWidth / 2; ++i) {
      const float2 two = unpack_bf16(packed.pair[i]);
      values[2 * i] = two.x;
      values[2 * i + 1] = two.y;
    }
  }
}

/// values[i] = from[i]; `from` is aligned to 16 bytes, or kWidth is 1.
template <int kWidth>
__device__ inline void load_floats(const float* from, float (&values)[kWidth]) {
  if constexpr (kWidth == 1) {
    values[0] = *from;
  } else {
#pragma unroll
    for (int i = 0; i < kWidth; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + i);
      values[i] = four.x;
      values[i + 1] = four.y;
      values[i + 2] = four.z;
      values[i + 3] = four.w;
    }
  }
}

/// to[i] = values[i], rounded to nearest even; `to` is aligned to kWidth elements.
template <int kWidth>
__device__ inline void store_floats(__nv_bfloat16* to, const float (&values)[kWidth]) {
  if constexpr (kWidth == 1) {
    *to = __float2bfloat16_rn(values[0]);
  } else {
    using Vector = typename Bf16Vector<kWidth>::Type;
    Vector packed;
#pragma unroll
    for (int i = 0; i < kWidth / 2; ++i) {
      packed.pair[i] = pack_bf16(values[2 * i], values[2 * i + 1]);
    }
    *reinterpret_cast<Vector*>(to) = packed;
  }
}

}  // namespace fovea::cuda
