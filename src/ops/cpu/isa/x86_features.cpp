// The one place that asks an x86 processor what it is.
#include "ops/cpu/isa/cpu_features.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fovea {

namespace cpu {

namespace {

/// Registers that CPUID returns.
struct CpuId {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
};

/// CPUID with 7 in EAX and this number in ECX; zeros where the processor does not know them.
CpuId read_cpuid7(unsigned ecx) noexcept {
  CpuId id;
  if (__get_cpuid_count(7, ecx, &id.eax, &id.ebx, &id.ecx, &id.edx) == 0) return {};
  return id;
}

bool has_avx_vnni() noexcept {
  constexpr unsigned kBit = 1u << 4;
  return (read_cpuid7(1).eax & kBit) != 0;
}

bool has_amx() noexcept {
  constexpr unsigned kBf16 = 1u << 22;
  constexpr unsigned kTiles = 1u << 24;
  constexpr unsigned kInt8 = 1u << 25;
  constexpr unsigned kAll = kBf16 | kTiles | kInt8;
  return (read_cpuid7(0).edx & kAll) == kAll;
}

bool request_tiles() noexcept {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM, since Linux 5.16
  constexpr long kTileData = 18;               // the number of the state component
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

CpuFeatures detect() noexcept {
  CpuFeatures found = 0;
  const auto add = [&](CpuFeatures feature, bool is_there) {
    if (is_there) found |= feature;
  };
  add(kAvx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  add(kAvxVnni, has_avx_vnni());
  add(kAvx512, __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"));
  add(kAvx512Vnni, __builtin_cpu_supports("avx512vnni"));
  add(kAvx512Bf16, __builtin_cpu_supports("avx512bf16"));
  add(kFastVdpbf16ps, (found & kAvx512Bf16) != 0 && !__builtin_cpu_is("intel"));
  add(kAmx, has_amx() && request_tiles());
  return found;
}

}  // namespace

CpuFeatures cpu_features() noexcept {
  static const CpuFeatures found = detect();
  return found;
}

CpuFeatures features_up_to(CpuIsa isa) noexcept {
  switch (isa) {
    case CpuIsa::kPortable:
    case CpuIsa::kNeon: return 0;
    case CpuIsa::kAvx2: return cpu_features() & (kAvx2 | kAvxVnni);
    case CpuIsa::kAvx512: break;
  }
  return cpu_features();
}

}  // namespace cpu

std::span<const CpuIsa> cpu_isas() noexcept {
  static constexpr CpuIsa kAll[] = {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512};
  const cpu::CpuFeatures found = cpu::cpu_features();
  const std::span<const CpuIsa> all(kAll);
  if ((found & cpu::kAvx512) != 0) return all;
  return all.first((found & cpu::kAvx2) != 0 ? 2 : 1);
}

}  // namespace fovea
