#include "support/emulated_bf16_leaf.h"

#include "ops/cpu/simd/simd_portable.h"
#include "support/tile_emulator.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/bf16/bf16_amx.h"

namespace fovea::test {
namespace {

// Types of this file, as the body needs them.
struct LeafVectors : cpu::FusedSimd {};
struct LeafInstructions : EmulatedBf16 {};
using LeafTiles = cpu::Bf16AmxTiles<LeafInstructions>;

}  // namespace

const cpu::Bf16Leaf& emulated_bf16_leaf() {
  static const cpu::Bf16Leaf leaf{&cpu::round_rows<LeafVectors>,
                                  &cpu::multiply_bf16<LeafVectors, LeafTiles>, LeafTiles::kRows,
                                  cpu::kBf16AmxTaskRows, "amx_emulated"};
  return leaf;
}

}  // namespace fovea::test
