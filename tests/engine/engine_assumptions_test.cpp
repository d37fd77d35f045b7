// What an engine assumes, and logs, where a checkpoint has no processor file.
#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <string>

#include "fovea/fovea.h"
#include "graph/recording_log.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using test::TemporaryDirectory;

std::string qwen3_vl_dir() { return test::golden_folder("qwen3_vl", "golden.safetensors"); }

/// A copy of a golden checkpoint without some of its files.
class EngineAssumptions : public ::testing::Test {
 protected:
  [[nodiscard]] std::string checkpoint(const std::string& from,
                                       std::initializer_list<const char*> missing) const {
    std::string model = folder_ / "model";
    fs::copy(from, model);
    for (const char* file : missing) fs::remove(model + "/" + file);
    return model;
  }
  /// What is logged by loading an engine, or by planning, which must be the same.
  [[nodiscard]] std::string logged(const std::string& model, EngineOptions options = {}) const {
    const ItemSize size{.width_px = 64, .height_px = 64};
    test::RecordingLog loading;
    test::RecordingLog planning;
    options.device = "cpu";
    options.log = &loading;
    (void)Engine::load(model, options);
    options.log = &planning;
    (void)plan(model, {&size, 1}, options);
    EXPECT_LE(loading.count("preprocessing.assumed"), 1);
    EXPECT_EQ(loading.count("preprocessing.assumed"), planning.count("preprocessing.assumed"));
    for (const auto& [level, line] : loading.lines) {
      if (!line.starts_with("preprocessing.assumed")) continue;
      EXPECT_EQ(level, LogLevel::kWarning);
      return line;
    }
    return "";
  }

  TemporaryDirectory folder_;
};

TEST_F(EngineAssumptions, AreNamedWhereNoProcessorFileIsThere) {
  const std::string model =
      checkpoint(qwen3_vl_dir(), {"preprocessor_config.json", "video_preprocessor_config.json"});
  EXPECT_EQ(logged(model), "preprocessing.assumed missing=" + model +
                               "/preprocessor_config.json image_pixels=65536..16777216 "
                               "image_mean=0.5,0.5,0.5 image_std=0.5,0.5,0.5 "
                               "video_pixels=4096..25165824");
}

TEST_F(EngineAssumptions, AreNotMadeAboutVideosThatHaveAFile) {
  const std::string line = logged(checkpoint(qwen3_vl_dir(), {"preprocessor_config.json"}),
                                  {.media = {.min_pixels = 4096}});
  EXPECT_NE(line.find("image_pixels=4096..16777216"), std::string::npos) << line;
  EXPECT_EQ(line.find("video_pixels"), std::string::npos) << line;
}

TEST_F(EngineAssumptions, VideosFollowTheProcessorOfImages) {
  EXPECT_EQ(logged(checkpoint(qwen3_vl_dir(), {"video_preprocessor_config.json"})), "");
}

TEST_F(EngineAssumptions, RandomWeightsHaveNoProcessorToAgreeWith) {
  const std::string model = checkpoint(qwen3_vl_dir(), {"preprocessor_config.json"});
  EXPECT_EQ(logged(model, {.dummy_weights = true}), "");
}

TEST_F(EngineAssumptions, OneLineSaysWhereTheValuesComeFrom) {
  const std::string model = checkpoint(qwen3_vl_dir(), {"video_preprocessor_config.json"});
  test::RecordingLog log;
  (void)Engine::load(model, {.device = "cpu", .log = &log});
  ASSERT_EQ(log.count("preprocessing.sources"), 1);
  for (const auto& [level, line] : log.lines) {
    if (!line.starts_with("preprocessing.sources")) continue;
    EXPECT_EQ(level, LogLevel::kDebug);
    const std::string file = "file=\"" + model + "/preprocessor_config.json\"";
    EXPECT_NE(line.find("preprocessing.sources image." + file), std::string::npos) << line;
    EXPECT_NE(line.find(" video." + file), std::string::npos) << line;
    EXPECT_NE(line.find("video.class_default=min_frames,"), std::string::npos) << line;
  }
}

TEST_F(EngineAssumptions, OfDeepseekOcrAreMeanAndDeviation) {
  const std::string golden = test::golden_folder("deepseek_ocr", "golden.safetensors");
  const std::string model = checkpoint(golden, {"processor_config.json"});
  EXPECT_EQ(logged(model), "preprocessing.assumed missing=" + model +
                               "/processor_config.json image_mean=0.5,0.5,0.5 "
                               "image_std=0.5,0.5,0.5");
}

}  // namespace
}  // namespace fovea
