// Grids of Nemotron Omni: sizes worked out with the reference, and the values of its images.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "checkpoint/safetensors.h"
#include "core/file.h"
#include "media/decode_image.h"
#include "media/resize/resize_fine.h"
#include "models/config_files.h"
#include "models/nemotron_h_omni/processor.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/property.h"

namespace fovea::nemotron_h_omni {
namespace {

constexpr const char* kConfig = R"({"vision_config": {}, "text_config": {"hidden_size": 64}})";

Processing processing_of(const std::string& image, const std::string& video = "",
                         const std::string& config = kConfig) {
  const checkpoint::HfConfig files =
      test::config_files({.config = config, .preprocessor = image, .video_preprocessor = video});
  return read_processing(files, parse_config(files));
}

Processor processor_of(const std::string& image, const std::string& video = "",
                       const std::string& config = kConfig) {
  return Processor(processing_of(image, video, config));
}

using Grid = std::array<std::int64_t, 3>;

TEST(NemotronHOmniProcessing, PlansImagesAsTheReference) {
  struct Case {
    std::int64_t width, height;
    Grid grid;
  };
  const Processor processor = processor_of("{}");
  for (const Case& c :
       {Case{1240, 1754, {1, 110, 78}}, Case{1920, 1080, {1, 68, 120}}, Case{2000, 90, {1, 8, 148}},
        Case{2600, 1900, {1, 98, 134}}, Case{333, 77, {1, 16, 66}}, Case{40, 500, {1, 106, 10}},
        Case{640, 480, {1, 30, 40}}}) {
    SCOPED_TRACE(std::to_string(c.width) + "x" + std::to_string(c.height));
    const ItemPlan plan = processor.plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid, c.grid);
    EXPECT_EQ(plan.spec.input_rows, c.grid[1] * c.grid[2]);
    EXPECT_EQ(plan.spec.out_rows, plan.spec.input_rows / 4);
    EXPECT_EQ(plan.pixel_bytes, static_cast<std::size_t>(plan.spec.input_rows * 256 * 9));
    EXPECT_EQ(plan.unit_bytes[0], plan.pixel_bytes);
    EXPECT_FALSE(plan.has_grid_thw);
  }
}

TEST(NemotronHOmniProcessing, PairsOfFramesAreUnits) {
  const Processor processor = processor_of("{}");
  for (const std::int64_t frames : {1, 2, 5, 6}) {
    const ItemPlan plan = processor.plan_video(frames, 1920, 1080);
    EXPECT_EQ(plan.grid, (Grid{(frames + 1) / 2, 24, 42}));
    const std::size_t pair = 24 * 42 * 256 * 9 * 2;
    EXPECT_EQ(plan.unit_bytes[0], pair);
    EXPECT_EQ(plan.pixel_bytes, pair * static_cast<std::size_t>(plan.grid[0]));
  }
  const Processor square = processor_of("{}", R"({"video_maintain_aspect_ratio": false})");
  EXPECT_EQ(square.plan_video(2, 1920, 1080).grid, (Grid{1, 32, 32}));
}

TEST(NemotronHOmniProcessing, AnOddLastFrameComesTwice) {
  const Processor processor = processor_of("{}", R"({"video_target_num_patches": 4})");
  const ItemPlan plan = processor.plan_video(3, 40, 40);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  for (const std::int64_t i : {2, 0, 1}) {
    const std::vector<std::uint8_t> frame(40 * 40 * 3, static_cast<std::uint8_t>(10 * i));
    processor.fill_frame(plan, i, {frame.data(), 40, 40}, pixels);
  }
  const std::size_t bytes = pixels.size() / 4;
  const auto frame = [&](std::size_t i) {
    return pixels.begin() + static_cast<std::ptrdiff_t>(i * bytes);
  };
  EXPECT_TRUE(std::equal(frame(2), frame(3), frame(3)));
  EXPECT_FALSE(std::equal(frame(1), frame(2), frame(2)));
}

TEST(NemotronHOmniProcessing, LimitsAreInEitherFile) {
  const std::string args = R"({"vision_config": {"args": {"model": "vit_huge_patch16_224",
      "min_num_patches": 16, "max_num_patches": 64}}, "text_config": {"hidden_size": 64}})";
  EXPECT_EQ(processor_of("", "", args).plan_image(1000, 1000).grid, (Grid{1, 8, 8}));
  EXPECT_EQ(processor_of(R"({"max_num_patches": 256})", "", args).plan_image(1000, 1000).grid,
            (Grid{1, 16, 16}));
  EXPECT_EQ(
      processor_of(R"({"max_model_len": 20, "min_num_patches": 4})").plan_image(900, 900).grid,
      (Grid{1, 8, 8}));
  EXPECT_EQ(processor_of(R"({"max_num_patches": 0, "max_model_len": 99999999})")
                .plan_image(4096, 4096)
                .grid,
            (Grid{1, 256, 256}));
}

TEST(NemotronHOmniProcessing, NoSequenceHasFewerTokensThanItSays) {
  for (const char* file : {"{}", R"({"min_num_patches": 100, "max_num_patches": 110})",
                           R"({"min_num_patches": 100, "max_num_patches": 100})"}) {
    const Processor processor = processor_of(file, R"({"video_target_num_patches": 90})");
    test::for_all(300, [&](std::mt19937_64& generator) {
      const std::int64_t width = test::uniform(generator, 1, 2000);
      const std::int64_t height = test::uniform(generator, 1 + width / 60, width);
      EXPECT_GE(processor.plan_image(width, height).spec.out_rows,
                processor.processing().least_view_tokens);
      EXPECT_GE(processor.plan_video(1, height, width).spec.out_rows,
                processor.processing().least_view_tokens);
    });
  }
}

TEST(NemotronHOmniProcessing, SamplesEvenly) {
  const Processor processor = processor_of("{}");
  EXPECT_EQ(processor.sample_frames(10, 10, 4), (std::vector<std::int64_t>{0, 2, 5, 7}));
  EXPECT_EQ(processor.sample_frames(3, 30, 1), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(processor.sample_frames(3, 1, 60), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(processor.sample_frames(48, 0, 1), (std::vector<std::int64_t>{0, 24}));
}

TEST(NemotronHOmniProcessing, RefusesWhatItCannotHonour) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& image) {
    test::expect_error(code, message, [&] { (void)processor_of(image); });
  };
  expect_refused(ErrorCode::kCorruptData, "patch_size: 14 contradicts config.json",
                 R"({"patch_size": 14})");
  expect_refused(ErrorCode::kUnsupported, "resample: only 3", R"({"resample": 2})");
  expect_refused(ErrorCode::kUnsupported, "do_normalize: false", R"({"do_normalize": false})");
  const Processor processor = processor_of("{}");
  test::expect_error(ErrorCode::kInvalidArgument, "too thin",
                     [&] { (void)processor.plan_image(10000000, 1); });
  test::expect_error(ErrorCode::kInvalidArgument, "has no area",
                     [&] { (void)processor.plan_image(0, 1); });
  test::expect_error(ErrorCode::kUnsupported, "no pixel values", [&] {
    (void)processor.plan_grid(Modality::kImage, {1, 2, 2});
  });
}

TEST(NemotronHOmniProcessing, VideosAreRefusedWhoseRowsWouldBeOthers) {
  const std::string norms = R"({"norm_mean": [0, 0, 0], "norm_std": [1, 1, 1]})";
  test::expect_error(ErrorCode::kUnsupported, "another image_mean, image_std than images",
                     [&] { (void)processor_of("{}", norms).plan_video(2, 64, 64); });
  EXPECT_NO_THROW((void)processor_of(norms, norms).plan_video(2, 64, 64));
  const std::string pruned = R"({"video_pruning_rate": 0.5, "vision_config": {},
                                 "text_config": {"hidden_size": 64}})";
  test::expect_error(ErrorCode::kUnsupported, "video_pruning_rate: only 0 is supported, got 0.5",
                     [&] { (void)processor_of("{}", "", pruned).plan_video(2, 64, 64); });
}

TEST(NemotronHOmniProcessing, SaysWhatItAssumes) {
  EXPECT_EQ(processor_of("").assumptions(),
            "missing=model/preprocessor_config.json image_mean=0.481455,0.457828,0.408211 "
            "image_std=0.26863,0.261303,0.275777");
  EXPECT_EQ(processor_of(R"({"norm_mean": [0, 0, 0], "norm_std": [1, 1, 1]})").assumptions(), "");
}

/// The normalised values that levels stand for, in the order of the reference: patches row by row,
/// each [3, 16, 16].
std::vector<float> values_of(const common::GridProcessing& p, const ItemPlan& plan,
                             const std::vector<std::uint8_t>& pixels) {
  const media::LevelScale scale = media::level_scale(media::FineFilter::kBicubic);
  const std::size_t plane = pixels.size() / media::kLevelBytes;
  std::vector<float> values;
  for (std::int64_t patch = 0; patch < plan.spec.input_rows; ++patch) {
    for (std::int64_t i = 0; i < 3 * 256; ++i) {
      const std::int64_t y = patch / plan.grid[2] * 16 + i % 256 / 16;
      const std::int64_t x = patch % plan.grid[2] * 16 + i % 16;
      const auto c = static_cast<std::size_t>(i / 256);
      const auto at = static_cast<std::size_t>((y * plan.resized_width_px + x) * 3) + c;
      const double bytes =
          pixels[at] + pixels[plane + at] / 256.0 + pixels[2 * plane + at] / 65536.0;
      const double level = double{scale.first} + double{scale.step} * bytes;
      values.push_back(
          static_cast<float>((level / 255 - p.scaling.image_mean[c]) / p.scaling.image_std[c]));
    }
  }
  return values;
}

TEST(NemotronHOmniProcessing, ValuesOfGoldenImagesAreThoseOfTheReference) {
  constexpr double kTolerance = 1e-5;  // f32 sums of 200 products of the filters
  const auto folders = test::golden_folders("nemotron_h_omni", "golden.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder nemotron_h_omni; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    const Processor processor(read_processing(files, parse_config(files)));
    const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
    int compared = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
      const std::string path = entry.path().string();
      const std::string name = entry.path().stem().string() + ".in.pixel_values";
      const media::Image image = media::decode_image(read_file(path, 1 << 24), path, {});
      const ItemPlan plan = processor.plan_image(image.width_px, image.height_px);
      std::int64_t rows = 0;
      std::memcpy(&rows, file.tensor(name + ".shape").data, sizeof(rows));
      EXPECT_EQ(plan.spec.input_rows, rows) << path;
      if (file.find(name) == nullptr) continue;  // too many to store
      std::vector<std::uint8_t> pixels(plan.pixel_bytes);
      processor.fill_frame(plan, 0, {image.rgb.data(), image.width_px, image.height_px}, pixels);
      const std::vector<float> values = values_of(processor.processing(), plan, pixels);
      const auto* const want = file.tensor(name).as<float>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(values[i], want[i], kTolerance) << path << " " << i;
      }
      ++compared;
    }
    EXPECT_GE(compared, 2);
  }
}

}  // namespace
}  // namespace fovea::nemotron_h_omni
