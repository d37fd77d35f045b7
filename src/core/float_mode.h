#pragma once

#include <cstdint>

namespace fovea {

/// How the current thread computes with floating-point numbers: the control bits of MXCSR.
using FloatMode = std::uint32_t;

/// Rounds to nearest, raises no signals, and takes denormal operands and results for zero. They are
/// less than 1e-38: no sum of a tower shows them, but on some processors each costs a hundred times
/// as much as another number.
inline constexpr FloatMode kTowerFloatMode = 0x9fc0;

[[nodiscard]] inline FloatMode float_mode() noexcept {
  constexpr FloatMode kStickyFlags = 0x3f;
  return __builtin_ia32_stmxcsr() & ~kStickyFlags;
}

/// Puts the current thread into a mode; the one of the time before returns afterwards. A host
/// program may have set its own.
class FloatModeScope {
 public:
  explicit FloatModeScope(FloatMode mode) noexcept : before_(__builtin_ia32_stmxcsr()) {
    __builtin_ia32_ldmxcsr(mode);
  }
  ~FloatModeScope() { __builtin_ia32_ldmxcsr(before_); }
  FloatModeScope(const FloatModeScope&) = delete;
  FloatModeScope& operator=(const FloatModeScope&) = delete;

 private:
  FloatMode before_;
};

}  // namespace fovea
