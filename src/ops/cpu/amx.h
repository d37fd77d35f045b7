#pragma once

namespace fovea::cpu {

/// What AMX multiplies.
enum class AmxType { kInt8, kBf16 };

/// Whether this process may use AMX for numbers of this type: the processor has it, and the system
/// grants its registers, for which the first call asks on behalf of all threads.
/// Source: Linux, Documentation/arch/x86/xstate.rst, "Using dynamically enabled XSTATE features in
/// user space applications".
[[nodiscard]] bool has_amx(AmxType type) noexcept;

}  // namespace fovea::cpu
