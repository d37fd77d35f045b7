// The families that there are, and finding one by its architecture.
#include "models/registry.h"

#include <gtest/gtest.h>

#include <set>

#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

TEST(Registry, EveryArchitectureFindsItsFamily) {
  for (const ModelFamily* family : model_families()) {
    EXPECT_FALSE(family->architectures.empty()) << family->name;
    for (const std::string_view name : family->architectures) {
      EXPECT_EQ(&find_family(name), family) << name;
    }
  }
}

TEST(Registry, EveryFamilyHasAGoldenModel) {
  std::set<std::string_view> covered;
  for (const std::string& folder : test::golden_models()) {
    covered.insert(find_family(checkpoint::read_hf_config(folder).architecture()).name);
  }
  for (const ModelFamily* family : model_families()) EXPECT_TRUE(covered.contains(family->name));
}

TEST(Registry, UnknownArchitecturesAreRefusedWithTheList) {
  for (const ModelFamily* family : model_families()) {
    for (const std::string_view known : family->architectures) {
      test::expect_error(ErrorCode::kUnsupported, std::string(known),
                         [] { (void)find_family("NoSuchModel"); });
    }
  }
}

}  // namespace
}  // namespace fovea
