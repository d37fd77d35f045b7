#pragma once

#include <cstdint>
#include <span>

namespace fovea {

/// The instruction sets that the CPU kernels may use, in ascending order on every architecture: x86
/// has kAvx2 and kAvx512, 64-bit ARM has kNeon. The last one of an architecture allows everything
/// that a machine has.
enum class CpuIsa : int { kPortable, kAvx2, kAvx512, kNeon };

/// Those that this machine has, in ascending order.
[[nodiscard]] std::span<const CpuIsa> cpu_isas() noexcept;
/// The best one of them.
[[nodiscard]] inline CpuIsa detect_cpu_isa() noexcept { return cpu_isas().back(); }
[[nodiscard]] const char* to_string(CpuIsa isa) noexcept;

namespace cpu {

/// Features of a processor, bits of a mask.
using CpuFeatures = std::uint32_t;

inline constexpr CpuFeatures kAvx2 = 1u << 0;        ///< with FMA
inline constexpr CpuFeatures kAvxVnni = 1u << 1;     ///< VNNI in vectors of 256 bits
inline constexpr CpuFeatures kAvx512 = 1u << 2;      ///< F, BW, VL and DQ
inline constexpr CpuFeatures kAvx512Vnni = 1u << 3;  ///< VNNI in vectors of 512 bits
inline constexpr CpuFeatures kAvx512Bf16 = 1u << 4;  ///< VDPBF16PS and VCVTNEPS2BF16
/// VDPBF16PS does more products than a multiply-add of f32 in the same time: on Zen 5 it does 1.9
/// times as many, on an Intel Xeon half as many, because there it takes two cycles.
inline constexpr CpuFeatures kFastVdpbf16ps = 1u << 5;
/// AMX for int8 and bf16, whose registers the system grants to this process.
inline constexpr CpuFeatures kAmx = 1u << 6;

inline constexpr CpuFeatures kNeon = 1u << 16;  ///< every 64-bit ARM has it
inline constexpr CpuFeatures kNeonDotProd = 1u
                                            << 17;  ///< SDOT: four products of bytes in every lane
/// SMMLA: products of 2 x 8 and 8 x 2 bytes, signed or not.
inline constexpr CpuFeatures kNeonI8mm = 1u << 18;
inline constexpr CpuFeatures kNeonBf16 = 1u << 19;  ///< BFMMLA: the same of 2 x 4 and 4 x 2 bf16

/// The features of this machine, read once. On x86 the first call asks Linux for the registers of
/// AMX on behalf of all threads. Sources: Linux, Documentation/arch/x86/xstate.rst, "Using
/// dynamically enabled XSTATE features in user space applications", and
/// Documentation/arm64/elf_hwcaps.rst.
[[nodiscard]] CpuFeatures cpu_features() noexcept;

/// Those of this machine that `isa` allows.
[[nodiscard]] CpuFeatures features_up_to(CpuIsa isa) noexcept;

}  // namespace cpu
}  // namespace fovea
