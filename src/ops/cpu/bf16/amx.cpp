// The bf16 linear layer for AMX: register tiles of 32 rows x 32 columns in four accumulators, 8192
// products in one instruction. All else is done in vectors of 512 bits.
#include "ops/cpu/amx_instructions.h"
#include "ops/cpu/bf16/bf16_avx512_bf16.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/bf16/bf16_amx.h"

namespace fovea::cpu {

namespace {

struct Bf16Instructions : AmxInstructions {
  using Sum = float;

  template <int kSum, int kX, int kWeights>
  static void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kX), "i"(kWeights));
  }
};

using Tiles = Bf16AmxTiles<Bf16Instructions>;

}  // namespace

constinit const Bf16Leaf kBf16Amx{&round_rows<PairsAvx512Bf16>,
                                  &multiply_bf16<PairsAvx512Bf16, Tiles>,
                                  Tiles::kRows,
                                  kBf16AmxTaskRows,
                                  "amx",
                                  /*multiplies_bf16=*/true};

}  // namespace fovea::cpu
