// config.json of DeepSeek-VL2: the published values, and every refusal.
#include "models/deepseek_vl2/config.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::deepseek_vl2 {
namespace {

Config parse(const std::string& vision = "{}", const std::string& projector = "{}",
             const std::string& more = "") {
  return parse_config(
      test::config_files({.config = "{\"vision_config\": " + vision +
                                    ", \"projector_config\": " + projector + more + "}"}));
}

TEST(DeepseekVl2Config, ReadsThePublishedFile) {
  const Config c = parse(
      R"({"layers": 27, "mlp_ratio": 3.7362, "model_name": "siglip_so400m_patch14_384",
          "model_type": "vision", "patch_size": 14, "width": 1152})",
      R"({"model_type": "mlp_projector", "n_embed": 2560})",
      R"(, "tile_tag": "2D", "global_view_pos": "head",
         "candidate_resolutions": [[384, 384], [384, 768], [3456, 384]])");
  EXPECT_EQ(c.tower.hidden_size, 1152);
  EXPECT_EQ(c.tower.num_attention_heads, 16);
  EXPECT_EQ(c.tower.intermediate_size, 4304);
  EXPECT_EQ(c.tower.hidden_act, ops::Activation::kGeluTanh);
  EXPECT_EQ(c.tower.view.patches(), 27 * 27) << "six pixels behind the last patch are not read";
  EXPECT_EQ(c.tokens_side(), 14);
  EXPECT_EQ(c.n_embed, 2560);
  EXPECT_EQ(c.projector_width, 2560);
  EXPECT_TRUE(c.global_first);
  ASSERT_EQ(c.candidate_resolutions.size(), 3u);
  EXPECT_EQ(c.candidate_resolutions[2].width_px, 3456);
}

TEST(DeepseekVl2Config, ReadsOtherSizes) {
  const Config c =
      parse(R"({"width": 64, "heads": 2, "layers": 1, "mlp_ratio": 2, "image_size": 56})",
            R"({"n_embed": 16, "mlp_ratio": 3})", R"(, "global_view_pos": "tail")");
  EXPECT_EQ(c.tower.intermediate_size, 128);
  EXPECT_EQ(c.tokens_side(), 2);
  EXPECT_EQ(c.projector_width, 48);
  EXPECT_FALSE(c.global_first);
  ASSERT_EQ(c.candidate_resolutions.size(), 1u) << "the view itself";
  EXPECT_EQ(c.candidate_resolutions[0].height_px, 56);
}

TEST(DeepseekVl2Config, RefusesWhatItCannotRun) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& vision, const std::string& projector,
                                 const std::string& more) {
    test::expect_error(code, message, [&] { (void)parse(vision, projector, more); });
  };
  const auto root = [&](ErrorCode code, const std::string& message, const std::string& keys) {
    expect_refused(code, message, "{}", "{}", ", " + keys);
  };
  root(ErrorCode::kUnsupported, "tile_tag: only 2D is supported", R"("tile_tag": "1D")");
  root(ErrorCode::kUnsupported, "global_view_pos: head and tail are supported",
       R"("global_view_pos": "middle")");
  root(ErrorCode::kUnsupported, "384x400 is not made of views of 384",
       R"("candidate_resolutions": [[384, 400]])");
  root(ErrorCode::kCorruptData, "expected 1 to 1024 resolutions, got 0",
       R"("candidate_resolutions": [])");
  root(ErrorCode::kCorruptData, "expected 2 numbers", R"("candidate_resolutions": [[384]])");
  const auto projector = [&](const std::string& message, const std::string& keys) {
    expect_refused(ErrorCode::kUnsupported, message, "{}", keys, "");
  };
  projector("projector_type: only downsample_mlp_gelu", R"({"projector_type": "linear"})");
  projector("token_pooling: only false", R"({"token_pooling": true})");
  projector("downsample_ratio: only 2", R"({"downsample_ratio": 4})");
  projector("depth: only 2", R"({"depth": 3})");
  projector("input_dim: only 1152", R"({"input_dim": 1024})");
  const auto vision = [&](ErrorCode code, const std::string& message, const std::string& keys) {
    expect_refused(code, message, keys, "{}", "");
  };
  vision(ErrorCode::kUnsupported, "class_token: only false", R"({"class_token": true})");
  vision(ErrorCode::kCorruptData, "7 heads do not divide", R"({"heads": 7})");
  vision(ErrorCode::kCorruptData, "13 pixels hold no patch of 14", R"({"image_size": 13})");
  vision(ErrorCode::kCorruptData, "mlp_ratio: expected at most 64", R"({"mlp_ratio": 65})");
  vision(ErrorCode::kCorruptData, "width: expected a number in", R"({"width": 0})");
}

}  // namespace
}  // namespace fovea::deepseek_vl2
