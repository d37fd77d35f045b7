// Resolutions, plans and views of DeepSeek-VL2: examples worked out with the vendor's processor.
#include "models/deepseek_vl2/processor.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::deepseek_vl2 {
namespace {

/// All canvases of at most nine views, as published files list them.
Config published() {
  Config c;
  for (std::int64_t cols = 1; cols <= 9; ++cols) {
    for (std::int64_t rows = 1; cols * rows <= 9; ++rows) {
      c.candidate_resolutions.push_back({384 * cols, 384 * rows});
    }
  }
  return c;
}

const Processor& processor() {
  static const Processor kProcessor(published(), Processing{});
  return kProcessor;
}

TEST(DeepseekVl2Processor, PlansImagesAsTheReference) {
  struct Case {
    std::int64_t width, height, cols, rows, out_rows;
  };
  // Rows are 14 x 15 of the global view, a separator, and those of the tiles.
  for (const Case& c :
       {Case{61, 47, 1, 1, 421}, Case{883, 345, 3, 1, 813}, Case{234, 679, 1, 2, 631},
        Case{76, 730, 1, 2, 631}, Case{1152, 1152, 3, 3, 211 + 42 * 43},
        Case{1920, 1080, 4, 2, 211 + 28 * 57}}) {
    SCOPED_TRACE(::testing::Message() << c.width << "x" << c.height);
    const ItemPlan plan = processor().plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, c.rows, c.cols}));
    EXPECT_EQ(plan.spec.out_rows, c.out_rows);
    EXPECT_EQ(plan.spec.units_on(0).count, 1 + c.rows * c.cols);
    EXPECT_EQ(plan.spec.units_on(0).rows, 196);
    EXPECT_EQ(plan.spec.units_on(0).patches, 729);
    EXPECT_EQ(plan.spec.path_tokens[0], 196 * (1 + c.rows * c.cols));
    EXPECT_EQ(plan.pixel_bytes, static_cast<std::size_t>((1 + c.rows * c.cols) * 3 * 384 * 384));
  }
}

TEST(DeepseekVl2Processor, OfEquallyGoodResolutionsTheOneWithLeastPaddingIsTaken) {
  const Resolution small = best_resolution(published(), 100, 100);
  EXPECT_EQ(small.width_px, 384);
  EXPECT_EQ(small.height_px, 384);
  const Resolution wide = best_resolution(published(), 760, 100);
  EXPECT_EQ(wide.width_px, 768);
  EXPECT_EQ(wide.height_px, 384);
}

TEST(DeepseekVl2Processor, ThinAndEmptyImagesAreRefused) {
  test::expect_error(ErrorCode::kInvalidArgument, "is too thin",
                     [] { (void)processor().plan_image(20000, 1); });
  test::expect_error(ErrorCode::kInvalidArgument, "no area",
                     [] { (void)processor().plan_image(0, 10); });
}

TEST(DeepseekVl2Processor, ViewsAreTheGlobalOneAndTheTilesOfAPaddedCanvas) {
  // Two columns of one colour each, twice as wide as high, exactly two tiles.
  std::vector<std::uint8_t> image;
  for (int y = 0; y < 384; ++y) {
    for (int x = 0; x < 768; ++x) image.insert(image.end(), 3, x < 384 ? 10 : 200);
  }
  const ItemPlan plan = processor().plan_image(768, 384);
  ASSERT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, 1, 2}));
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  processor().fill_frame(plan, 0, {image.data(), 768, 384}, pixels);
  const auto at = [&](std::size_t view, std::size_t y, std::size_t x) {
    return pixels[view * 3 * 384 * 384 + (y * 384 + x) * 3];
  };
  EXPECT_EQ(at(0, 0, 0), 127) << "the global view is padded above";
  EXPECT_EQ(at(0, 95, 100), 127);
  EXPECT_EQ(at(0, 97, 100), 10);
  EXPECT_EQ(at(0, 200, 300), 200);
  EXPECT_EQ(at(0, 288, 300), 127);
  EXPECT_EQ(at(1, 0, 0), 10);
  EXPECT_EQ(at(2, 383, 383), 200);
}

TEST(DeepseekVl2Processing, ReadsMeanAndDeviation) {
  const Processing p = read_processing(
      test::config_files({.processor = R"({"image_mean": [0, 0.25, 1], "image_std": [1, 2, 3]})"}),
      {.image_backend = ImageBackend::kTorchvision});
  EXPECT_EQ(p.scaling.image_mean, (std::array<float, 3>{0, 0.25f, 1}));
  EXPECT_EQ(p.engine, media::ResizeEngine::kTorchvision);
  EXPECT_EQ(read_processing(test::config_files({}), {}).engine, media::ResizeEngine::kPillow);
}

}  // namespace
}  // namespace fovea::deepseek_vl2
