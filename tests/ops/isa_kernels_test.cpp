// Which kernels a machine uses, for every set of features.
#include "ops/cpu/isa/isa_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
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
using cpu::kNeon;
using cpu::kNeonBf16;
using cpu::kNeonDotProd;
using cpu::kNeonI8mm;

constexpr cpu::CpuFeatures kXeon = kAvx2 | kAvx512 | kAvx512Vnni | kAvx512Bf16;

/// Whether a unit of this build has this name.
bool exists(const std::string& name) {
  return std::ranges::any_of(cpu::isa_units(),
                             [&](const cpu::IsaUnit* unit) { return unit->name == name; });
}

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
      {kXeon | kAvxVnni | kAmx, "amx", "amx"},
      {kNeonBf16, "portable", "portable"},
      {kNeon, "neon", "neon"},
      {kNeon | kNeonDotProd, "neon", "neon_dotprod"},
      {kNeon | kNeonDotProd | kNeonI8mm, "neon", "neon_i8mm"},
      {kNeon | kNeonDotProd | kNeonI8mm | kNeonBf16, "neon_bf16", "neon_i8mm"}};
  int checked = 0;
  for (const auto& [features, bf16, int8] : choices) {
    if (!exists(bf16) || !exists(int8)) continue;  // of another architecture
    const cpu::IsaKernels kernels = cpu::choose_kernels(features);
    EXPECT_STREQ(kernels.bf16.name, bf16) << features;
    EXPECT_STREQ(kernels.int8.name, int8) << features;
    const bool is_arm = (features & kNeon) != 0;
    EXPECT_STREQ(kernels.attention16.name, is_arm ? "neon" : int8) << features;
    const bool has_tiles = cpu::has_all(features, kXeon | kAmx);
    EXPECT_STREQ(kernels.attention_bf16.name, has_tiles ? "amx" : nullptr) << features;
    ++checked;
  }
  EXPECT_GE(checked, 6);
}

TEST(IsaKernels, OfFloat32AreThoseOfTheWidestVectors) {
  EXPECT_STREQ(cpu::choose_kernels(0).f32.name, "portable");
  for (const CpuIsa isa : cpu_isas())
    EXPECT_STREQ(cpu::choose_kernels(cpu::features_up_to(isa)).f32.name, to_string(isa));
}

TEST(IsaKernels, OfFloat32WithAmxAreThoseOfAvx512) {
  if (!exists("avx512")) GTEST_SKIP() << "not x86";
  EXPECT_STREQ(cpu::choose_kernels(kAvx2 | kAvxVnni).f32.name, "avx2");
  EXPECT_STREQ(cpu::choose_kernels(kXeon | kAmx).f32.name, "avx512");
  EXPECT_STREQ(cpu::choose_kernels(kXeon | kAmx).attention.name, "avx512");
}

TEST(IsaKernels, OfAUnitCarryItsNameWhichIsItsOwn) {
  std::set<std::string> names;
  for (const cpu::IsaUnit* const unit : cpu::isa_units()) {
    EXPECT_TRUE(names.insert(unit->name).second) << unit->name;
    for (const char* const name :
         {unit->kernels.attention.name, unit->kernels.f32.name, unit->kernels.bf16.name,
          unit->kernels.int8.name, unit->kernels.attention16.name,
          unit->kernels.attention_bf16.name})
      EXPECT_TRUE(name == nullptr || std::string(name) == unit->name) << unit->name;
  }
}

TEST(CpuFeatures, OfAnInstructionSetAreNoMoreThanItAllows) {
  EXPECT_EQ(cpu::features_up_to(CpuIsa::kPortable), 0u);
  EXPECT_EQ(cpu::features_up_to(CpuIsa::kAvx2), cpu::cpu_features() & (kAvx2 | kAvxVnni));
  EXPECT_EQ(cpu::features_up_to(CpuIsa::kAvx512) | cpu::features_up_to(CpuIsa::kNeon),
            cpu::cpu_features());  // either the one or the other has some
}

}  // namespace
}  // namespace fovea::test
