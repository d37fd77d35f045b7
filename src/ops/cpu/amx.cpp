// Finds AMX and asks the system for its registers.
#include "ops/cpu/amx.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fovea::cpu {

namespace {

/// EDX of CPUID, leaf 7.
unsigned amx_features() noexcept {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 ? edx : 0;
}

bool request_tiles() noexcept {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM, since Linux 5.16
  constexpr long kTileData = 18;               // the number of the state component
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool has_amx(AmxType type) noexcept {
  constexpr unsigned kTiles = 1u << 24;
  constexpr unsigned kInt8 = 1u << 25;
  constexpr unsigned kBf16 = 1u << 22;
  static const unsigned features = amx_features();
  static const bool is_granted = (features & kTiles) != 0 && request_tiles();
  return is_granted && (features & (type == AmxType::kInt8 ? kInt8 : kBf16)) != 0;
}

}  // namespace fovea::cpu
