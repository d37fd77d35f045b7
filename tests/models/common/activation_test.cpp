// Names of activations in config files.
#include "models/common/activation.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace fovea::common {
namespace {

using ops::Activation;

TEST(ParseActivation, KnowsEveryNameOfTheTable) {
  const auto parse = [](const char* name) { return parse_activation(name, "key"); };
  EXPECT_EQ(parse("gelu_pytorch_tanh"), Activation::kGeluTanh);
  EXPECT_EQ(parse("gelu_new"), Activation::kGeluTanh);
  EXPECT_EQ(parse("gelu"), Activation::kGeluErf);
  EXPECT_EQ(parse("quick_gelu"), Activation::kQuickGelu);
  EXPECT_EQ(parse("silu"), Activation::kSilu);
  EXPECT_EQ(parse("swish"), Activation::kSilu);
}

TEST(ParseActivation, RefusesOtherNamesWithTheList) {
  test::expect_error(ErrorCode::kUnsupported,
                     "config.json: hidden_act: expected gelu_pytorch_tanh, gelu_new, gelu, "
                     "quick_gelu, silu or swish, got relu",
                     [] { (void)parse_activation("relu", "config.json: hidden_act"); });
}

}  // namespace
}  // namespace fovea::common
