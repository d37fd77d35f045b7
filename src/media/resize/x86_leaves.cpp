// The inner loops that an x86 processor can run.
#include "core/check.h"
#include "media/resize/choose_leaf.h"

namespace fovea::media {
namespace {

bool has_avx2() { return __builtin_cpu_supports("avx2") != 0; }

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0;
}

}  // namespace

const ResizeLeaf& choose_leaf(ResizeIsa isa) {
  switch (isa) {
    case ResizeIsa::kBest:
      return has_avx512() ? kAvx512Leaf : has_avx2() ? kAvx2Leaf : kPortableLeaf;
    case ResizeIsa::kPortable: return kPortableLeaf;
    case ResizeIsa::kAvx2:
      FOVEA_CHECK(has_avx2(), kUnsupported, "resize: this CPU lacks AVX2");
      return kAvx2Leaf;
    case ResizeIsa::kAvx512:
      FOVEA_CHECK(has_avx512(), kUnsupported, "resize: this CPU lacks AVX-512 F, BW or VL");
      return kAvx512Leaf;
    case ResizeIsa::kNeon: FOVEA_CHECK(false, kUnsupported, "resize: this CPU lacks NEON");
  }
  FOVEA_CHECK(false, kInternal, "resize: instruction set without inner loops");
  return kPortableLeaf;
}

}  // namespace fovea::media
