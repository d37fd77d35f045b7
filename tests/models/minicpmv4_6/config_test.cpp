// config.json of MiniCPM-V 4.6: defaults of the reference, what is read, what is refused.
#include "models/minicpmv4_6/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::minicpmv4_6 {
namespace {

/// @param root further keys of config.json, each followed by a comma.
Config parse(const std::string& vision, const std::string& root = "") {
  return parse_config(test::config_files({.config = "{" + root + "\"vision_config\": " + vision +
                                                    R"(, "text_config": {"hidden_size": 1024}})"}));
}

TEST(MiniCpmV46Config, DefaultsAreThoseOfTheReference) {
  const Config c = parse("{}");
  EXPECT_EQ(c.tower.num_hidden_layers, 12);
  EXPECT_EQ(c.tower.hidden_size, 768);
  EXPECT_EQ(c.tower.view.grid(), 14);
  EXPECT_EQ(c.insert_layer_id, 6);
  EXPECT_EQ(c.text_hidden_size, 1024);
  EXPECT_EQ(c.grid.resize_factor(), 64);
}

TEST(MiniCpmV46Config, ReadsThePublishedTower) {
  const Config c = parse(R"({"hidden_act": "gelu_pytorch_tanh", "hidden_size": 1152,
                             "image_size": 980, "intermediate_size": 4304, "patch_size": 14,
                             "num_attention_heads": 16, "num_hidden_layers": 27,
                             "window_kernel_size": [2, 2]})",
                         R"("insert_layer_id": 6, "drop_vision_last_layer": false, )");
  EXPECT_EQ(c.tower.view.grid(), 70);
  EXPECT_EQ(c.tower.num_hidden_layers, 27);
  EXPECT_EQ(c.grid.resize_factor(), 56);
}

TEST(MiniCpmV46Config, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](const std::string& message, const std::string& vision,
                                 const std::string& root = "") {
    test::expect_error(ErrorCode::kUnsupported, message, [&] { (void)parse(vision, root); });
  };
  expect_refused("insert_layer_id: expected a layer in [0, 11], got 12", "{}",
                 R"("insert_layer_id": 12, )");
  expect_refused("insert_layer_id: expected a layer in [0, 11], got -1", "{}",
                 R"("insert_layer_id": -1, )");
  expect_refused("window_kernel_size: only 2 x 2 is supported, got a side of 4",
                 R"({"window_kernel_size": [4, 4]})");
  expect_refused("merge_kernel_size: only 2 x 2", "{}", R"("merge_kernel_size": [1, 1], )");
  expect_refused("merger_times: only 1 is supported, got 2", "{}", R"("merger_times": 2, )");
  expect_refused("downsample_mode: only 16x is supported, got 4x", "{}",
                 R"("downsample_mode": "4x", )");
  expect_refused("drop_vision_last_layer: only false", "{}", R"("drop_vision_last_layer": true, )");
}

}  // namespace
}  // namespace fovea::minicpmv4_6
