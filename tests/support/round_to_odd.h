#pragma once

namespace fovea::test {

/// The arithmetic of BFMMLA. Denormal operands and results are zero, what is too large is infinite.
/// Source: Arm Architecture Reference Manual for A-profile, shared/functions/float/bfloat.

/// The product of two bf16 numbers, which needs no rounding.
[[nodiscard]] float multiply_bf16(float a, float b);

/// The sum rounded to odd: toward zero, but the last bit is set where that is not exact.
[[nodiscard]] float add_to_odd(float a, float b);

}  // namespace fovea::test
