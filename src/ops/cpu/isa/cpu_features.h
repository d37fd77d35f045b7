#pragma once

#include <cstdint>

namespace fovea {

/// The instruction sets that the CPU kernels may use, in ascending order. kAvx512 allows everything
/// that this machine has.
enum class CpuIsa : int { kPortable, kAvx2, kAvx512 };

/// The best instruction set of this machine.
[[nodiscard]] CpuIsa detect_cpu_isa() noexcept;
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

/// The features of this machine, read once. The first call asks Linux for the registers of AMX on
/// behalf of all threads. Source: Linux, Documentation/arch/x86/xstate.rst, "Using dynamically
/// enabled XSTATE features in user space applications".
[[nodiscard]] CpuFeatures cpu_features() noexcept;

/// Those of this machine that `isa` allows.
[[nodiscard]] CpuFeatures features_up_to(CpuIsa isa) noexcept;

}  // namespace cpu
}  // namespace fovea
