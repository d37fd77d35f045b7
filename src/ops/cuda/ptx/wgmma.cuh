#pragma once

// WGMMA, Hopper's matrix instructions of a warp group (128 threads): d[64 x N] (+)= a[64 x 16]
// b[16 x N] with bf16 operands and f32 sums, or with 32 summed dims of E4M3. They run in the
// background.

#include <cstdint>

namespace fovea::cuda::ptx {

/// Orders register writes of the warp group before the WGMMAs that follow.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// Closes a group of WGMMAs.
__device__ inline void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most kPending groups are under way.
template <int kPending>
__device__ inline void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
/// Says that the sums of a group of WGMMAs that has ended are `results`, which keeps the compiler
/// from reading them earlier.
template <int kCount>
__device__ inline void wgmma_have_ended(float (&results)[kCount][4]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    asm volatile(""
                 : "+f"(results[i][0]), "+f"(results[i][1]), "+f"(results[i][2]),
                   "+f"(results[i][3])::"memory");
  }
}
/// Waits until at most kPending groups are under way. `results` are the sums of the groups that
/// have ended.
template <int kPending, int kCount>
__device__ inline void wgmma_wait_group(float (&results)[kCount][4]) {
  wgmma_wait_group<kPending>();
  wgmma_have_ended(results);
}

/// Descriptor of an operand in shared memory without swizzle, made of 8 x 8 blocks of 128
/// contiguous bytes; `shared` is a multiple of 16. Distances in bytes between neighbouring blocks:
/// `leading` along the 16 summed dims and `stride` along the other axis for an operand whose blocks
/// hold eight summed dims in 16 bytes (stored [64][16] or [N][16]); the other way round for one
/// stored [16][N].
__device__ inline std::uint64_t operand_descriptor(std::uint32_t shared, int leading, int stride) {
  constexpr int kUnit = 16;  // bytes
  return static_cast<std::uint64_t>((shared & 0x3ffff) / kUnit) |
         static_cast<std::uint64_t>(leading / kUnit) << 16 |
         static_cast<std::uint64_t>(stride / kUnit) << 32;
}
/// Descriptor of an operand that TMA has stored with its 128-byte swizzle: [64][64] or [N][64]
/// bf16, rows one after the other, at a multiple of 1024 bytes.
__device__ inline std::uint64_t tile_descriptor(std::uint32_t shared) {
  constexpr std::uint64_t kEightRows = 1024 / 16;  // from one group of 8 rows to the next
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
  return (shared & 0x3ffff) / 16 | std::uint64_t{1} << 16 | kEightRows << 32 | kSwizzle128;
}
/// Moves a descriptor `bytes` further.
__device__ inline std::uint64_t advance_operand(std::uint64_t descriptor, int bytes) {
  return descriptor + static_cast<std::uint64_t>(bytes / 16);
}

// The instructions. All of them only start the work; see wgmma_wait_group. The type of d says N:
//
//   wgmma_init(float (&d)[N / 8][4], std::uint64_t a, std::uint64_t b)
//     d = a b, of a [64][16] and b [N][16] in shared memory. It does not read d, and tells the
//     compiler so. Otherwise the compiler would treat the old contents of those registers as an
//     operand and wait for them.
//   wgmma(float (&d)[N / 8][4], std::uint64_t a, std::uint64_t b, bool accumulate = true)
//     d += a b of the same operands, or d = a b without `accumulate`.
//   wgmma(float (&d)[N / 8][4], const std::uint32_t (&a)[4], std::uint64_t b)
//     d += a b, of a in registers, as ptx::multiply_add takes it, and b [16][N] in shared memory.
//   wgmma_k_major(float (&d)[N / 8][4], const std::uint32_t (&a)[4], std::uint64_t b)
//     the same of b [N][16] in shared memory: rows of weights.
//   wgmma_init_e4m3(float (&d)[N / 8][4], std::uint64_t a, std::uint64_t b)
//   wgmma_e4m3(float (&d)[N / 8][4], std::uint64_t a, std::uint64_t b)
//     as the first two, of E4M3 a [64][32] and b [N][32] in shared memory: the same bytes. Hopper
//     keeps 13 bits behind the first of the largest of d and the products, and cuts off what all of
//     them have below: far more than the operands have, unless d is the sum of many of one sign.
//   wgmma_e4m3(float (&d)[N / 8][4], const std::uint32_t (&a)[4], std::uint64_t b,
//              bool accumulate)
//     d += a b, or d = a b without `accumulate`, of a in registers: lane l has rows l / 4 (a[0] and
//     a[2]) and 8 further (a[1] and a[3]) of its warp, of these bytes 4 (l % 4) to 3 further (a[0],
//     a[1]) and those 16 further.
//
// Lane l of warp w holds in d[j] rows 16 w + l / 4 (first two) and 8 further (last two) of columns
// 8 j + 2 (l % 4) and the next.
//
// The instruction names each of the N / 2 registers of d, in its text and as an operand. Macros
// write both from one list of numbers; each list continues that of the next smaller N.

// clang-format off

/// item(1) item(2) ... item(N / 2 - 1): the registers of d after the first.
#define FOVEA_REST_32(item) \
  item(1) item(2) item(3) item(4) item(5) item(6) item(7) item(8) item(9) item(10) item(11) \
  item(12) item(13) item(14) item(15)
#define FOVEA_REST_40(item) FOVEA_REST_32(item) item(16) item(17) item(18) item(19)
#define FOVEA_REST_64(item) FOVEA_REST_40(item) \
  item(20) item(21) item(22) item(23) item(24) item(25) item(26) item(27) item(28) item(29) \
  item(30) item(31)
#define FOVEA_REST_72(item) FOVEA_REST_64(item) item(32) item(33) item(34) item(35)
#define FOVEA_REST_80(item) FOVEA_REST_72(item) item(36) item(37) item(38) item(39)
#define FOVEA_REST_88(item) FOVEA_REST_80(item) item(40) item(41) item(42) item(43)
#define FOVEA_REST_96(item) FOVEA_REST_88(item) item(44) item(45) item(46) item(47)
#define FOVEA_REST_104(item) FOVEA_REST_96(item) item(48) item(49) item(50) item(51)
#define FOVEA_REST_112(item) FOVEA_REST_104(item) item(52) item(53) item(54) item(55)
#define FOVEA_REST_120(item) FOVEA_REST_112(item) item(56) item(57) item(58) item(59)
#define FOVEA_REST_128(item) FOVEA_REST_120(item) item(60) item(61) item(62) item(63)
#define FOVEA_REST_136(item) FOVEA_REST_128(item) item(64) item(65) item(66) item(67)
#define FOVEA_REST_144(item) FOVEA_REST_136(item) item(68) item(69) item(70) item(71)
#define FOVEA_REST_192(item) FOVEA_REST_144(item) \
  item(72) item(73) item(74) item(75) item(76) item(77) item(78) item(79) item(80) item(81) item(82) item(83) item(84) item(85) item(86) item(87) item(88) item(89) \
  item(90) item(91) item(92) item(93) item(94) item(95)
#define FOVEA_REST_216(item) FOVEA_REST_192(item) \
  item(96) item(97) item(98) item(99) item(100) item(101) item(102) item(103) item(104) \
  item(105) item(106) item(107)
#define FOVEA_REST_256(item) FOVEA_REST_216(item) \
  item(108) item(109) item(110) item(111) item(112) item(113) item(114) item(115) item(116) \
  item(117) item(118) item(119) item(120) item(121) item(122) item(123) item(124) item(125) \
  item(126) item(127)
#define FOVEA_NAME(i) ", %" #i
#define FOVEA_RESULT(i) , "=f"(d[i / 4][i % 4])
#define FOVEA_SUM(i) , "+f"(d[i / 4][i % 4])

/// The instruction, with d and whatever operands follow.
#define FOVEA_WGMMA(N, operands)                                                                   \
  "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 "                                      \
  "{%0" FOVEA_REST_##N(FOVEA_NAME) "}, " operands ";\n"

/// The functions for one N. i0 to i4 are the names of the operands after those of d.
#define FOVEA_WGMMA_FUNCTIONS(N, i0, i1, i2, i3, i4)                                               \
  __device__ inline void wgmma_init(float (&d)[N / 8][4], std::uint64_t a, std::uint64_t b) {      \
    asm volatile("{.reg .pred p; setp.ne.b32 p, 0, 0;\n"                                           \
                 FOVEA_WGMMA(N, i0 ", " i1 ", p, 1, 1, 0, 0") "}"                                  \
                 : "=f"(d[0][0]) FOVEA_REST_##N(FOVEA_RESULT)                                      \
                 : "l"(a), "l"(b));                                                                \
  }                                                                                                \
  __device__ inline void wgmma(float (&d)[N / 8][4], std::uint64_t a, std::uint64_t b,             \
                               bool accumulate = true) {                                           \
    asm volatile("{.reg .pred p; setp.ne.b32 p, " i2 ", 0;\n"                                      \
                 FOVEA_WGMMA(N, i0 ", " i1 ", p, 1, 1, 0, 0") "}"                                  \
                 : "+f"(d[0][0]) FOVEA_REST_##N(FOVEA_SUM)                                         \
                 : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));                             \
  }                                                                                                \
  __device__ inline void wgmma(float (&d)[N / 8][4], const std::uint32_t (&a)[4],                  \
                               std::uint64_t b) {                                                  \
    asm volatile(FOVEA_WGMMA(N, "{" i0 ", " i1 ", " i2 ", " i3 "}, " i4 ", 1, 1, 1, 1")            \
                 : "+f"(d[0][0]) FOVEA_REST_##N(FOVEA_SUM)                                         \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                            \
  }                                                                                                \
  __device__ inline void wgmma_k_major(float (&d)[N / 8][4], const std::uint32_t (&a)[4],          \
                                       std::uint64_t b) {                                          \
    asm volatile(FOVEA_WGMMA(N, "{" i0 ", " i1 ", " i2 ", " i3 "}, " i4 ", 1, 1, 1, 0")            \
                 : "+f"(d[0][0]) FOVEA_REST_##N(FOVEA_SUM)                                         \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                            \
  }

FOVEA_WGMMA_FUNCTIONS(32, "%16", "%17", "%18", "%19", "%20")
FOVEA_WGMMA_FUNCTIONS(40, "%20", "%21", "%22", "%23", "%24")
FOVEA_WGMMA_FUNCTIONS(64, "%32", "%33", "%34", "%35", "%36")
FOVEA_WGMMA_FUNCTIONS(72, "%36", "%37", "%38", "%39", "%40")
FOVEA_WGMMA_FUNCTIONS(80, "%40", "%41", "%42", "%43", "%44")
FOVEA_WGMMA_FUNCTIONS(88, "%44", "%45", "%46", "%47", "%48")
FOVEA_WGMMA_FUNCTIONS(96, "%48", "%49", "%50", "%51", "%52")
FOVEA_WGMMA_FUNCTIONS(104, "%52", "%53", "%54", "%55", "%56")
FOVEA_WGMMA_FUNCTIONS(112, "%56", "%57", "%58", "%59", "%60")
FOVEA_WGMMA_FUNCTIONS(120, "%60", "%61", "%62", "%63", "%64")
FOVEA_WGMMA_FUNCTIONS(128, "%64", "%65", "%66", "%67", "%68")
FOVEA_WGMMA_FUNCTIONS(136, "%68", "%69", "%70", "%71", "%72")
FOVEA_WGMMA_FUNCTIONS(144, "%72", "%73", "%74", "%75", "%76")
FOVEA_WGMMA_FUNCTIONS(192, "%96", "%97", "%98", "%99", "%100")
FOVEA_WGMMA_FUNCTIONS(216, "%108", "%109", "%110", "%111", "%112")
FOVEA_WGMMA_FUNCTIONS(256, "%128", "%129", "%130", "%131", "%132")

/// The E4M3 functions for one N. i0 to i5 are the names of the operands after those of d.
#define FOVEA_WGMMA_E4M3(N, operands)                                                              \
  "wgmma.mma_async.sync.aligned.m64n" #N "k32.f32.e4m3.e4m3 "                                      \
  "{%0" FOVEA_REST_##N(FOVEA_NAME) "}, " operands ";\n"
#define FOVEA_WGMMA_FUNCTIONS_E4M3(N, i0, i1)                                                      \
  __device__ inline void wgmma_init_e4m3(float (&d)[N / 8][4], std::uint64_t a,                    \
                                         std::uint64_t b) {                                        \
    asm volatile("{.reg .pred p; setp.ne.b32 p, 0, 0;\n"                                           \
                 FOVEA_WGMMA_E4M3(N, i0 ", " i1 ", p, 1, 1") "}"                                   \
                 : "=f"(d[0][0]) FOVEA_REST_##N(FOVEA_RESULT)                                      \
                 : "l"(a), "l"(b));                                                                \
  }                                                                                                \
  __device__ inline void wgmma_e4m3(float (&d)[N / 8][4], std::uint64_t a,                         \
                                    std::uint64_t b) {                                             \
    asm volatile(FOVEA_WGMMA_E4M3(N, i0 ", " i1 ", 1, 1, 1")                                       \
                 : "+f"(d[0][0]) FOVEA_REST_##N(FOVEA_SUM)                                         \
                 : "l"(a), "l"(b));                                                                \
  }
#define FOVEA_WGMMA_REGISTERS_E4M3(N, i0, i1, i2, i3, i4, i5)                                      \
  __device__ inline void wgmma_e4m3(float (&d)[N / 8][4], const std::uint32_t (&a)[4],             \
                                    std::uint64_t b, bool accumulate) {                            \
    asm volatile("{.reg .pred p; setp.ne.b32 p, " i5 ", 0;\n"                                      \
                 FOVEA_WGMMA_E4M3(N, "{" i0 ", " i1 ", " i2 ", " i3 "}, " i4 ", p, 1, 1") "}"      \
                 : "+f"(d[0][0]) FOVEA_REST_##N(FOVEA_SUM)                                         \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),                             \
                   "r"(static_cast<int>(accumulate)));                                             \
  }

FOVEA_WGMMA_FUNCTIONS_E4M3(32, "%16", "%17")
FOVEA_WGMMA_FUNCTIONS_E4M3(64, "%32", "%33")
FOVEA_WGMMA_FUNCTIONS_E4M3(72, "%36", "%37")
FOVEA_WGMMA_FUNCTIONS_E4M3(96, "%48", "%49")
FOVEA_WGMMA_FUNCTIONS_E4M3(128, "%64", "%65")
FOVEA_WGMMA_FUNCTIONS_E4M3(144, "%72", "%73")
FOVEA_WGMMA_FUNCTIONS_E4M3(192, "%96", "%97")
FOVEA_WGMMA_FUNCTIONS_E4M3(216, "%108", "%109")
FOVEA_WGMMA_FUNCTIONS_E4M3(256, "%128", "%129")

FOVEA_WGMMA_REGISTERS_E4M3(72, "%36", "%37", "%38", "%39", "%40", "%41")
FOVEA_WGMMA_REGISTERS_E4M3(80, "%40", "%41", "%42", "%43", "%44", "%45")
FOVEA_WGMMA_REGISTERS_E4M3(88, "%44", "%45", "%46", "%47", "%48", "%49")
FOVEA_WGMMA_REGISTERS_E4M3(96, "%48", "%49", "%50", "%51", "%52", "%53")
FOVEA_WGMMA_REGISTERS_E4M3(104, "%52", "%53", "%54", "%55", "%56", "%57")
FOVEA_WGMMA_REGISTERS_E4M3(120, "%60", "%61", "%62", "%63", "%64", "%65")
FOVEA_WGMMA_REGISTERS_E4M3(136, "%68", "%69", "%70", "%71", "%72", "%73")

// clang-format on

}  // namespace fovea::cuda::ptx
