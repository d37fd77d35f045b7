#pragma once

#include <cstdint>

namespace fovea {

/// How the current thread computes with floating-point numbers: the control bits of MXCSR, or FPCR
/// of a 64-bit ARM.
using FloatMode = std::uint32_t;

// kTowerFloatMode rounds to nearest, raises no signals, and takes denormal operands and results for
// zero. They are less than 1e-38: no sum of a tower shows them, but on some processors each costs a
// hundred times as much as another number.
#if defined(__aarch64__)
inline constexpr FloatMode kTowerFloatMode = 1u << 24;  // FZ
inline constexpr FloatMode kStickyFlags = 0;            // they are in FPSR

[[nodiscard]] inline FloatMode read_float_control() noexcept {
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return static_cast<FloatMode>(control);
}

inline void write_float_control(FloatMode control) noexcept {
  asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{control}) : "memory");
}
#else
inline constexpr FloatMode kTowerFloatMode = 0x9fc0;
inline constexpr FloatMode kStickyFlags = 0x3f;

[[nodiscard]] inline FloatMode read_float_control() noexcept { return __builtin_ia32_stmxcsr(); }

inline void write_float_control(FloatMode control) noexcept { __builtin_ia32_ldmxcsr(control); }
#endif

[[nodiscard]] inline FloatMode float_mode() noexcept {
  return read_float_control() & ~kStickyFlags;
}

/// Puts the current thread into a mode; the one of the time before returns afterwards. A host
/// program may have set its own.
class FloatModeScope {
 public:
  explicit FloatModeScope(FloatMode mode) noexcept : before_(read_float_control()) {
    write_float_control(mode);
  }
  ~FloatModeScope() { write_float_control(before_); }
  FloatModeScope(const FloatModeScope&) = delete;
  FloatModeScope& operator=(const FloatModeScope&) = delete;

 private:
  FloatMode before_;
};

}  // namespace fovea
