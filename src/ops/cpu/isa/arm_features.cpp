// The one place that asks a 64-bit ARM what it is.
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include "ops/cpu/isa/cpu_features.h"

namespace fovea {

namespace cpu {

namespace {

CpuFeatures detect() noexcept {
  const unsigned long first = ::getauxval(AT_HWCAP);
  const unsigned long second = ::getauxval(AT_HWCAP2);
  CpuFeatures found = kNeon;
  if ((first & HWCAP_ASIMDDP) != 0) found |= kNeonDotProd;
  if ((second & HWCAP2_I8MM) != 0) found |= kNeonI8mm;
  if ((second & HWCAP2_BF16) != 0) found |= kNeonBf16;
  return found;
}

}  // namespace

CpuFeatures cpu_features() noexcept {
  static const CpuFeatures found = detect();
  return found;
}

CpuFeatures features_up_to(CpuIsa isa) noexcept {
  return isa == CpuIsa::kNeon ? cpu_features() : 0;
}

}  // namespace cpu

std::span<const CpuIsa> cpu_isas() noexcept {
  static constexpr CpuIsa kAll[] = {CpuIsa::kPortable, CpuIsa::kNeon};
  return kAll;
}

}  // namespace fovea
