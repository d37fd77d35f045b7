// Host side of Kimi-K2.5: sizes, sampling and files, with examples of the reference.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/config_files.h"
#include "models/kimi_k25/model.h"
#include "support/expect_error.h"

namespace fovea::kimi_k25 {
namespace {

constexpr common::GridGeometry kChunks{
    .patch_size = 14, .temporal_patch_size = 4, .frames = common::FrameUse::kTogether};

common::GridProcessor processor_of(const std::string& image, const std::string& video = {}) {
  return common::GridProcessor(read_processing(
      test::config_files({.preprocessor = image, .video_preprocessor = video}), kChunks, {}));
}

/// The file of published checkpoints, with more keys.
std::string published(const std::string& more = {}) {
  return R"({"media_proc_cfg": {"in_patch_limit": 16384, "patch_size": 14,
      "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "merge_kernel_size": 2,
      "fixed_output_tokens": null, "patch_limit_on_one_side": 512,
      "in_patch_limit_each_frame": 4096, "in_patch_limit_video": null, "sample_fps": 2.0,
      "max_num_frames_each_video": null, "temporal_merge_kernel_size": 4,
      "timestamp_mode": "hh:mm:ss.fff")" +
         more + "}}";
}

TEST(KimiK25Processing, PlansImagesAsTheReference) {
  struct Case {
    std::int64_t width, height, grid_height, grid_width;
  };
  const common::GridProcessor processor = processor_of(published());
  for (const Case& c :
       {Case{1240, 1754, 126, 90}, Case{1920, 1080, 78, 138}, Case{2000, 90, 8, 144},
        Case{2600, 1900, 110, 152}, Case{333, 77, 6, 24}, Case{40, 500, 36, 4},
        Case{640, 480, 36, 46}, Case{8000, 200, 14, 512}, Case{20000, 20, 2, 512},
        Case{3, 9000, 512, 2}, Case{1, 1, 2, 2}, Case{4000, 3000, 112, 150}}) {
    SCOPED_TRACE(std::to_string(c.width) + "x" + std::to_string(c.height));
    const ItemPlan plan = processor.plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, c.grid_height, c.grid_width}));
    EXPECT_EQ(plan.spec.out_rows, c.grid_height * c.grid_width / 4);
  }
  test::expect_error(ErrorCode::kInvalidArgument, "has no area",
                     [&] { (void)processor.plan_image(0, 10); });
}

TEST(KimiK25Processing, FramesHaveALimitOfTheirOwn) {
  const ItemPlan plan = processor_of(published()).plan_video(6, 1920, 1080);
  EXPECT_EQ(plan.resized_width_px, 1204);
  EXPECT_EQ(plan.resized_height_px, 672);
  EXPECT_EQ(plan.spec.out_rows, 2 * 48 * 86 / 4);
  const common::GridProcessor native =
      processor_of("{}", R"({"max_patches": 150, "size": {"max_height": 20, "max_width": 20}})");
  EXPECT_EQ(native.plan_video(2, 800, 600).resized_width_px, 224);
  EXPECT_EQ(native.plan_video(2, 800, 600).resized_height_px, 168);
  EXPECT_EQ(native.plan_image(640, 480).grid, (std::array<std::int64_t, 3>{1, 36, 46}));
}

TEST(KimiK25Processing, EveryFrameIsPaddedWithBlack) {
  const common::GridProcessor processor = processor_of(published());
  const ItemPlan plan = processor.plan_video(2, 20, 30);
  const std::vector<std::uint8_t> white(20 * 30 * 3, 255);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes, 7);
  for (const std::int64_t frame : {1, 0}) {
    processor.fill_frame(plan, frame, {white.data(), 20, 30}, pixels);
  }
  for (std::size_t y = 0; y < 2 * 56; ++y) {
    for (std::size_t x = 0; x < 28; ++x) {
      ASSERT_EQ(pixels[(y * 28 + x) * 3], x < 20 && y % 56 < 30 ? 255 : 0) << x << ", " << y;
    }
  }
}

TEST(KimiK25Processing, SamplesAsTheFilesClass) {
  using Indices = std::vector<std::int64_t>;
  const common::GridProcessor vendors = processor_of(published());
  EXPECT_EQ(vendors.sample_frames(100, 25, 2), (Indices{0, 14, 28, 42, 57, 71, 85, 99}));
  EXPECT_EQ(vendors.sample_frames(61, 24, 2), (Indices{0, 15, 30, 45, 60}));
  EXPECT_EQ(vendors.sample_frames(7, 30, 2), (Indices{0}));
  EXPECT_EQ(vendors.sample_frames(3, 1, 2), (Indices{0, 1, 2}));
  const common::GridProcessor native = processor_of("{}");
  EXPECT_EQ(native.sample_frames(100, 25, 2), (Indices{0, 12, 25, 37, 50, 62, 75, 87}));
  EXPECT_EQ(native.sample_frames(10, 5, 2), (Indices{0, 2, 5, 7}));
  EXPECT_EQ(native.sample_frames(7, 30, 2), (Indices{0}));
  EXPECT_EQ(native.sample_frames(3, 1, 2), (Indices{0, 1, 2}));
  EXPECT_EQ(native.sample_frames(48, 0, 2), (Indices{0, 12, 24, 36})) << "an unknown rate";
}

TEST(KimiK25Processing, ResizesAsTheFilesClass) {
  EXPECT_EQ(processor_of(published()).processing().engine, media::ResizeEngine::kPillow);
  EXPECT_EQ(processor_of("").processing().engine, media::ResizeEngine::kPillow);
  EXPECT_EQ(processor_of("{}").processing().engine, media::ResizeEngine::kTorchvision);
}

TEST(KimiK25Processing, RefusesWhatTheFilesCannotMean) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& file) {
    test::expect_error(code, message, [&] { (void)processor_of(file); });
  };
  expect_refused(ErrorCode::kUnsupported, "media_proc_cfg.fixed_output_tokens: only null",
                 published(R"(, "fixed_output_tokens": 64)"));
  expect_refused(ErrorCode::kCorruptData, "media_proc_cfg.patch_size: 16 contradicts config.json",
                 published(R"(, "patch_size": 16)"));
  expect_refused(ErrorCode::kCorruptData, "merge_kernel_size: 1 contradicts",
                 published(R"(, "merge_kernel_size": [1, 1])"));
  expect_refused(ErrorCode::kCorruptData, "in_patch_limit", published(R"(, "in_patch_limit": 0)"));
  expect_refused(ErrorCode::kUnsupported,
                 "expected max_height and max_width to be equal, got 20 and 30",
                 R"({"size": {"max_height": 20, "max_width": 30}})");
  expect_refused(ErrorCode::kUnsupported, "resample", R"({"resample": 2})");
  expect_refused(ErrorCode::kUnsupported, "do_resize: false", R"({"do_resize": false})");
}

TEST(KimiK25Processing, VideosOfSeveralSizesAreRefusedAlone) {
  const common::GridProcessor limited =
      processor_of(published(R"(, "in_patch_limit_video": 65536)"));
  EXPECT_EQ(limited.plan_image(28, 28).spec.out_rows, 1);
  test::expect_error(ErrorCode::kUnsupported, "in_patch_limit_video: videos are only supported",
                     [&] { (void)limited.plan_video(2, 28, 28); });
  const common::GridProcessor other = processor_of("{}", R"({"image_mean": [0, 0, 0]})");
  test::expect_error(ErrorCode::kUnsupported, "another image_mean than images",
                     [&] { (void)other.plan_video(2, 28, 28); });
}

TEST(KimiK25Processing, SaysWhatItAssumesAndWhereEveryValueComesFrom) {
  EXPECT_EQ(processor_of("").assumptions(),
            "missing=model/preprocessor_config.json max_patches=16384 image_mean=0.5,0.5,0.5 "
            "image_std=0.5,0.5,0.5");
  EXPECT_EQ(processor_of(published()).assumptions(), "");
  EXPECT_EQ(processor_of(published()).sources(),
            "image.file=\"preprocessor_config.json: media_proc_cfg\" "
            "image.given=in_patch_limit,image_mean,image_std "
            "video.file=\"preprocessor_config.json: media_proc_cfg\" "
            "video.given=in_patch_limit_each_frame");
}

}  // namespace
}  // namespace fovea::kimi_k25
