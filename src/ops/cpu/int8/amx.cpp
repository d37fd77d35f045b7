// The int8 linear layer for AMX: register tiles of 32 rows x 32 columns in four accumulators, 16384
// products in one instruction. All else is done in vectors of 512 bits.
#include "ops/cpu/amx_instructions.h"
#include "ops/cpu/int8/int8_avx512.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/int8/body.h"

namespace fovea::cpu {

namespace {

struct Int8Instructions : AmxInstructions {
  using Sum = std::int32_t;

  template <int kSum, int kX, int kWeights>
  static void multiply() {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kX), "i"(kWeights));
  }
};

static_assert(kGroupBytes == kAmxPanelBytes && kStepGroups == kAmxRows);

struct Int8AmxTiles : AmxTiles<Int8Instructions> {
  /// As multiply_int8_tile, for 1..kRows rows; `beside` once a step.
  template <class Beside>
  void multiply(const Int8Rows& x, std::int64_t rows, const std::byte* panel, std::int64_t groups,
                Upcoming upcoming, std::int32_t* sums, const Beside& beside) {
    AmxTiles::multiply({.x = reinterpret_cast<const std::byte*>(x.values),
                        .stride = x.stride,
                        .rows = rows,
                        .panel = panel,
                        .steps = groups / kStepGroups,
                        .next = upcoming.data,
                        .next_bytes = kStepGroups * upcoming.step},
                       sums, beside);
  }
};

/// 8 tiles of 32 rows share what is fetched of the weights: with fewer, memory is the limit. With
/// 4096 features they take 1 MB of the L2 of the thread, which has 2 MB where there is AMX.
constexpr std::int64_t kAmxTaskRows = 256;

}  // namespace

constinit const Int8Leaf kInt8Amx{&quantize_rows<Int8Avx512>,
                                  &multiply_int8<Int8Avx512, Int8AmxTiles>, Int8AmxTiles::kRows,
                                  kAmxTaskRows, "amx"};

}  // namespace fovea::cpu
