// The linear layer for processors without a leaf of their own.
#include "ops/cpu/vector/simd_portable.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/linear/body.h"

namespace fovea::cpu {

namespace {

struct LinearSimd : Simd {
  static constexpr int kTileRows = 4;  // 8 accumulators of 16 registers
  // As for AVX2.
  static constexpr std::int64_t kBlockK = 256;
  static constexpr std::int64_t kTaskPanels = 16;

  static void prefetch(const std::byte* p) { __builtin_prefetch(p); }
  static void widen_pairs(const std::uint32_t* pairs, Reg& low, Reg& high) {
    Bits both;
    std::memcpy(&both, pairs, sizeof(both));
    low = reinterpret_cast<Reg>(both << 16);
    high = reinterpret_cast<Reg>(both & -65536);
  }
};

}  // namespace

constinit const LinearLeaf kLinearPortable{&run_linear_task<LinearSimd>, LinearSimd::kTileRows,
                                           LinearSimd::kTaskPanels};

}  // namespace fovea::cpu
