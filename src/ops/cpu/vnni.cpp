// What the processor says of its integer products.
#include "ops/cpu/vnni.h"

#include <cpuid.h>

namespace fovea::cpu {

namespace {

bool read_avx_vnni() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned kAvxVnni = 1u << 4;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & kAvxVnni) != 0;
}

}  // namespace

bool has_avx512_vnni() {
  static const bool has = __builtin_cpu_supports("avx512vnni") != 0;
  return has;
}

bool has_avx_vnni() {
  static const bool has = read_avx_vnni();
  return has;
}

}  // namespace fovea::cpu
