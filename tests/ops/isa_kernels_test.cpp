// Which kernels a machine uses, for every set of features.
#include "ops/cpu/isa/isa_kernels.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace fovea::test {
namespace {

using cpu::kAmx;
using cpu::kAvx2;
using cpu::kAvx512;
using cpu::kAvx512Bf16;
using cpu::kAvx512Vnni;
using cpu::kAvxVnni;
using cpu::kFastVdpbf16ps;

constexpr cpu::CpuFeatures kXeon = kAvx2 | kAvx512 | kAvx512Vnni | kAvx512Bf16;

struct Choice {
  cpu::CpuFeatures features;
  const char* bf16;
  const char* int8;  ///< and of attention in integers
};

TEST(IsaKernels, AreTheFastestThatTheFeaturesAllow) {
  const Choice choices[] = {
      {0, "portable", "portable"},
      {kAvxVnni, "portable", "portable"},
      {kAvx2, "avx2", "avx2"},
      {kAvx2 | kAvxVnni, "avx2", "avx_vnni"},
      {kAvx2 | kAvx512, "avx512", "avx2"},
      {kAvx2 | kAvxVnni | kAvx512, "avx512", "avx_vnni"},
      {kAvx2 | kAvx512 | kAvx512Vnni, "avx512", "avx512_vnni"},
      {kXeon, "avx512", "avx512_vnni"},  // VDPBF16PS would be slower than multiply-adds
      {kXeon | kFastVdpbf16ps, "avx512_bf16", "avx512_vnni"},
      {kXeon | kAvxVnni | kAmx, "amx", "amx"}};
  for (const auto& [features, bf16, int8] : choices) {
    const cpu::IsaKernels kernels = cpu::choose_kernels(features);
    EXPECT_STREQ(kernels.bf16.name, bf16) << features;
    EXPECT_STREQ(kernels.int8.name, int8) << features;
    EXPECT_STREQ(kernels.attention16.name, int8) << features;
  }
}

TEST(IsaKernels, OfFloat32AreThoseOfTheWidestVectors) {
  const auto run_of = [](cpu::CpuFeatures features) {
    return cpu::choose_kernels(features).f32.multiply;
  };
  EXPECT_EQ(run_of(0), cpu::kPortableUnit.kernels.f32.multiply);
  EXPECT_EQ(run_of(kAvx2 | kAvxVnni), cpu::kAvx2Unit.kernels.f32.multiply);
  EXPECT_EQ(run_of(kXeon | kAmx), cpu::kAvx512Unit.kernels.f32.multiply);
  EXPECT_EQ(cpu::choose_kernels(kXeon | kAmx).attention.run,
            cpu::kAvx512Unit.kernels.attention.run);
}

TEST(IsaKernels, OfAUnitCarryItsNameWhichIsItsOwn) {
  std::set<std::string> names;
  for (const cpu::IsaUnit* const unit : cpu::isa_units()) {
    EXPECT_TRUE(names.insert(unit->name).second) << unit->name;
    for (const char* const name :
         {unit->kernels.attention.name, unit->kernels.f32.name, unit->kernels.bf16.name,
          unit->kernels.int8.name, unit->kernels.attention16.name})
      EXPECT_TRUE(name == nullptr || std::string(name) == unit->name) << unit->name;
  }
}

TEST(CpuFeatures, OfAnInstructionSetAreNoMoreThanItAllows) {
  EXPECT_EQ(cpu::features_up_to(CpuIsa::kPortable), 0u);
  EXPECT_EQ(cpu::features_up_to(CpuIsa::kAvx2), cpu::cpu_features() & (kAvx2 | kAvxVnni));
  EXPECT_EQ(cpu::features_up_to(CpuIsa::kAvx512), cpu::cpu_features());
}

}  // namespace
}  // namespace fovea::test
