// The inner loops that a 64-bit ARM can run.
#include "core/check.h"
#include "media/resize/choose_leaf.h"

namespace fovea::media {

const ResizeLeaf& choose_leaf(ResizeIsa isa) {
  switch (isa) {
    case ResizeIsa::kPortable: return kPortableLeaf;
    case ResizeIsa::kBest:
    case ResizeIsa::kNeon: return kNeonLeaf;
    case ResizeIsa::kAvx2:
    case ResizeIsa::kAvx512:
      FOVEA_CHECK(false, kUnsupported, "resize: AVX2 and AVX-512 are of x86, this CPU is an ARM");
  }
  FOVEA_CHECK(false, kInternal, "resize: instruction set without inner loops");
  return kPortableLeaf;
}

}  // namespace fovea::media
