// Qwen3-VL behind the graph protocol: what it declares, and what it says about itself.
#include "models/qwen3_vl/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/config_files.h"
#include "models/load_model.h"
#include "support/expect_error.h"

namespace fovea::qwen3_vl {
namespace {

std::unique_ptr<EncoderGraphModel> planner(const std::string& architecture,
                                           const std::string& preprocessor = "") {
  return plan_model(
      test::config_files({.config = "{\"architectures\": [\"" + architecture +
                                    "\"], \"vision_config\": {\"out_hidden_size\": 4096}}",
                          .preprocessor = preprocessor}),
      {});
}

TEST(Qwen3VlModel, OneTowerServesAllItsArchitectures) {
  for (const std::string_view architecture : family().architectures) {
    const bool has_deepstack =
        !architecture.starts_with("Qwen3_5") && !architecture.starts_with("Qwen4Exp") &&
        !architecture.starts_with("InternS1Pro") && !architecture.starts_with("InternS2") &&
        !architecture.starts_with("ColQwen3_5") && !architecture.starts_with("ClefFlash") &&
        !architecture.starts_with("D3For");
    const auto model = planner(std::string(architecture));
    EXPECT_EQ(model->graph_spec().main_width, 4096) << architecture;
    EXPECT_EQ(model->graph_spec().out_width, has_deepstack ? 4 * 4096 : 4096) << architecture;
    EXPECT_EQ(model->path_width(0), model->graph_spec().out_width) << architecture;
  }
}

TEST(Qwen3VlModel, AlpamayosLimitsOfImagesStandInItsConfiguration) {
  const auto grid_of = [](const std::string& limits) {
    const auto model = plan_model(
        test::config_files(
            {.config = "{\"architectures\": [\"Alpamayo2Super\"]" + limits +
                       R"(, "vlm_config": {"vision_config": {"out_hidden_size": 64}}})",
             .preprocessor = R"({"size": {"shortest_edge": 65536, "longest_edge": 16777216}})"}),
        {});
    return model->processor().plan_image(1920, 1080).grid;
  };
  constexpr std::array<std::int64_t, 3> kDefault{1, 20, 36};  // 184,320 pixels
  constexpr std::array<std::int64_t, 3> kSmaller{1, 14, 26};  // 93,184
  EXPECT_EQ(grid_of(""), kDefault);
  EXPECT_EQ(grid_of(", \"min_pixels\": 4096, \"max_pixels\": 100000"), kSmaller);
  test::expect_error(ErrorCode::kCorruptData, "expected min_pixels <= max_pixels",
                     [&] { (void)grid_of(", \"max_pixels\": 4096"); });
}

TEST(Qwen3VlModel, LimitsVideosAsTheClassThatReadsThemDoes) {
  const auto video_of = [](const std::string& architecture, const std::string& preprocessor) {
    return planner(architecture, preprocessor)->processor().plan_video(16, 1280, 720).grid;
  };
  constexpr std::array<std::int64_t, 3> kWhole{8, 44, 80};
  constexpr std::array<std::int64_t, 3> kFrames{8, 36, 64};
  const auto file = [](const std::string& limits, const std::string& type) {
    const std::string named = type.empty() ? "" : ", \"video_processor_type\": \"" + type + "\"";
    return "{\"size\": " + limits + named +
           ", \"image_mean\": [0.5, 0.5, 0.5], \"image_std\": [0.5, 0.5, 0.5]}";
  };
  const std::string frames = R"({"shortest_edge": 100352, "longest_edge": 602112})";
  const std::string whole = R"({"shortest_edge": 4096, "longest_edge": 25165824})";
  constexpr const char* kOmni = "Qwen3OmniMoeForConditionalGeneration";
  constexpr const char* kQwen3Vl = "Qwen3VLForConditionalGeneration";
  EXPECT_EQ(video_of(kOmni, file(frames, "")), kFrames);
  EXPECT_EQ(video_of(kQwen3Vl, file(whole, "")), kWhole);
  EXPECT_EQ(video_of(kQwen3Vl, file(frames, "Qwen2VLVideoProcessor")), kFrames);
  EXPECT_EQ(video_of(kOmni, file(whole, "Qwen3VLVideoProcessor")), kWhole);
}

TEST(Qwen3VlModel, DeclaresOnePathForImagesAndVideos) {
  const auto model = planner("Qwen3VLForConditionalGeneration");
  const GraphSpec& spec = model->graph_spec();
  EXPECT_EQ(spec.modalities, (std::vector<Modality>{Modality::kImage, Modality::kVideo}));
  ASSERT_EQ(spec.paths.size(), 1u);
  EXPECT_EQ(spec.paths[0].name, "default");
  EXPECT_EQ(spec.max_frames_per_video, 32);
  EXPECT_EQ(spec.min_token_budget, 64);
  EXPECT_FALSE(spec.max_token_budget.has_value());
}

TEST(Qwen3VlModel, AttentionCostsAsMuchAsAllElseAtTheParityRows) {
  // Per row a block does 4 h^2 + 2 h i multiplications in its GEMMs and 2 h per key: equal at
  // 2 h + i keys.
  const auto model = planner("Qwen3VLForConditionalGeneration");
  EXPECT_EQ(model->graph_spec().attention_parity_rows, 2 * 1152 + 4304);
}

TEST(Qwen3VlModel, FactsAreTheSizesOfTheTowerAndTheLimitsOfItsProcessor) {
  const auto model =
      planner("Qwen3VLForConditionalGeneration", R"({"min_pixels": 1024, "max_pixels": 4096})");
  const auto facts = model->facts();
  const auto fact = [&](const std::string& name) {
    const auto entry = std::ranges::find(facts, name, &std::pair<std::string, std::string>::first);
    return entry == facts.end() ? "absent" : entry->second;
  };
  EXPECT_EQ(fact("depth"), "27");
  EXPECT_EQ(fact("hidden_size"), "1152");
  EXPECT_EQ(fact("intermediate_size"), "4304");
  EXPECT_EQ(fact("num_heads"), "16");
  EXPECT_EQ(fact("patch_size"), "16");
  EXPECT_EQ(fact("image pixels"), "1024..4096");
}

TEST(Qwen3VlModel, ProcessorSaysWhatItAssumes) {
  EXPECT_NE(planner("Qwen3VLForConditionalGeneration")->processor().assumptions(), "");
}

}  // namespace
}  // namespace fovea::qwen3_vl
