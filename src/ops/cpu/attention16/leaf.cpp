// Choice of the leaf of attention in 16-bit integers.
#include "ops/cpu/amx.h"
#include "ops/cpu/attention16/task.h"
#include "ops/cpu/linear/task_shape.h"
#include "ops/cpu/vnni.h"

namespace fovea::cpu {

std::int64_t attention16_task_queries(std::int64_t head_dim) noexcept {
  constexpr std::int64_t kComponents = 76032;  // 6 bytes each
  return task_queries(kComponents, head_dim);
}

std::int64_t attention16_scratch_floats(std::int64_t head_dim) noexcept {
  constexpr std::int64_t kStep = 64;  // components that a tile of AMX holds: 32 floats in a row
  constexpr std::int64_t kVector = 16;
  constexpr std::int64_t kPanelGap = 4;  // 16 floats per panel of at least 4 components
  constexpr std::int64_t kScales = 2;
  const std::int64_t steps = ceil_div(head_dim, kStep);
  const std::int64_t query = head_dim / 2 + 2 * steps;  // steps of equal length, in whole groups
  const std::int64_t queries = attention16_task_queries(head_dim) * (query + head_dim + 3);
  const std::int64_t keys = kKeyBlock * (steps * kStep / 2 + 1);
  const std::int64_t values =
      (kKeyBlock / 2 + kPanelGap + kScales) * ceil_div(head_dim, kVector) * kVector;
  return queries + keys + values + kKeyBlock * kMaxStripLanes + 2 * kVector;
}

const Attention16Leaf& attention16_leaf(CpuIsa isa) {
  if (isa >= CpuIsa::kAvx512 && has_avx512_vnni())
    return has_amx(AmxType::kInt8) ? kAttention16Amx : kAttention16Avx512Vnni;
  if (isa >= CpuIsa::kAvx2) return has_avx_vnni() ? kAttention16AvxVnni : kAttention16Avx2;
  return kAttention16Portable;
}

}  // namespace fovea::cpu
