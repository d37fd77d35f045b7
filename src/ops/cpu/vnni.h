#pragma once

namespace fovea::cpu {

/// Whether the processor has VNNI in vectors of 512 bits.
[[nodiscard]] bool has_avx512_vnni();
/// Whether it has VNNI in vectors of 256 bits without AVX-512.
[[nodiscard]] bool has_avx_vnni();

}  // namespace fovea::cpu
