// Choice of the leaf of attention in 16-bit integers.
#include "ops/cpu/attention16/task.h"
#include "ops/cpu/vnni.h"

namespace fovea::cpu {

const Attention16Leaf& attention16_leaf(CpuIsa isa) {
  if (isa >= CpuIsa::kAvx512 && has_avx512_vnni()) return kAttention16Avx512Vnni;
  if (isa >= CpuIsa::kAvx2) return has_avx_vnni() ? kAttention16AvxVnni : kAttention16Avx2;
  return kAttention16Portable;
}

}  // namespace fovea::cpu
