// config.json of Phi-4-multimodal in both formats: what is read, what is refused.
#include "models/phi4_multimodal/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::phi4_multimodal {
namespace {

Config parse(const std::string& vision, const std::string& root = "") {
  return parse_config(
      test::config_files({.config = R"({"architectures": ["Phi4MultimodalForCausalLM"], )" + root +
                                    "\"vision_config\": " + vision + "}"}));
}

Config parse_vendor(const std::string& image) {
  return parse_config(test::config_files({.config = R"({"architectures": ["Phi4MMForCausalLM"],
          "embd_layer": {"image_embd_layer": )" + image +
                                                    "}}"}));
}

TEST(Phi4MultimodalConfig, DefaultsAreThoseOfTheReference) {
  const Config c = parse("{}");
  EXPECT_EQ(c.format, Format::kNative);
  EXPECT_EQ(c.tower.hidden_size, 1152);
  EXPECT_EQ(c.tower.num_hidden_layers, 26) << "the last of 27 does not run";
  EXPECT_EQ(c.tower.intermediate_size, 4304);
  EXPECT_EQ(c.tower.view.grid(), 32);
  EXPECT_EQ(c.tower.view.tokens_side(), 16);
  EXPECT_EQ(c.text_hidden_size, 3072);
}

TEST(Phi4MultimodalConfig, ReadsSizesOfOtherTowers) {
  const Config c = parse(R"({"hidden_size": 144, "num_attention_heads": 2, "num_hidden_layers": 5,
                             "image_size": 112, "crop_size": 112, "feature_layer": -3})",
                         R"("hidden_size": 64, )");
  EXPECT_EQ(c.tower.num_hidden_layers, 3);
  EXPECT_EQ(c.tower.view.tokens_side(), 4);
  EXPECT_EQ(c.text_hidden_size, 64);
}

TEST(Phi4MultimodalConfig, TheVendorsTowerIsThatOfTheClass) {
  const Config c = parse_vendor(R"({"crop_size": 448, "hd_transform_order": "sub_glb"})");
  EXPECT_EQ(c.format, Format::kVendor);
  EXPECT_EQ(c.tower.num_hidden_layers, 26);
  EXPECT_EQ(c.tower.view.grid(), 32);
}

TEST(Phi4MultimodalConfig, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](const std::string& message, const std::string& vision) {
    test::expect_error(ErrorCode::kUnsupported, message, [&] { (void)parse(vision); });
  };
  expect_refused("feature_layer: expected a number in [-27, -2], got -1",
                 R"({"feature_layer": -1})");
  expect_refused("crop_size: only 448", R"({"crop_size": 336})");
  expect_refused("num_channels", R"({"num_channels": 1})");
  expect_refused("image_size: 42 is not a multiple of 28",
                 R"({"image_size": 42, "crop_size": 42})");
  test::expect_error(ErrorCode::kUnsupported, "hd_transform_order: only sub_glb",
                     [] { (void)parse_vendor(R"({"hd_transform_order": "glb_sub"})"); });
  test::expect_error(ErrorCode::kUnsupported, "use_hd_transform: only true",
                     [] { (void)parse_vendor(R"({"use_hd_transform": false})"); });
}

}  // namespace
}  // namespace fovea::phi4_multimodal
