// Pixel values of the processor become the bytes that the tower would read of the picture.
#include "models/qwen3_vl/pixel_values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "checkpoint/safetensors.h"
#include "models/qwen3_vl/preprocess.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::qwen3_vl {
namespace {

using Grid = std::array<std::int64_t, 3>;

/// What patchify reads for all rows of an item, in the order of pixel_values.
std::vector<float> patchify(const Config& config, const PreprocessConfig& preprocess,
                            const ItemPlan& plan, const std::vector<std::uint8_t>& pixels) {
  const media::NormalizeTable table = normalize_table(preprocess);
  const auto rows = static_cast<std::size_t>(plan.spec.input_rows);
  std::vector<std::int32_t> positions(4 * rows);
  std::vector<std::int32_t> sources(4 * rows);
  write_patch_rows(config, plan, 0, positions, sources);
  std::vector<float> values;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::int32_t* const source = &sources[4 * r];
    for (std::int64_t c = 0; c < 3; ++c) {
      for (std::int64_t f = 0; f < config.temporal_patch_size; ++f) {
        for (std::int64_t y = 0; y < config.patch_size; ++y) {
          for (std::int64_t x = 0; x < config.patch_size; ++x) {
            const auto at =
                static_cast<std::size_t>(source[0] + f * source[2] + y * source[1] + 3 * x + c);
            values.push_back(table[static_cast<std::size_t>(c)][pixels.at(at)]);
          }
        }
      }
    }
  }
  return values;
}

std::vector<std::uint8_t> random_pixels(const ItemPlan& plan) {
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<std::uint8_t>((i * 2654435761U) >> 7);
  }
  return pixels;
}

/// Patches of 4 x 4 pixels: grids stay small.
Config small_config() {
  Config config;
  config.patch_size = 4;
  return config;
}

PreprocessConfig any_size() {
  PreprocessConfig preprocess;
  preprocess.image = preprocess.video = {1, 1 << 24};
  return preprocess;
}

class PixelValues : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<std::uint8_t> fill(const ItemPlan& plan,
                                               const std::vector<float>& values) const {
    std::vector<std::uint8_t> out(plan.pixel_bytes);
    fill_pixel_values(config_, preprocess_, plan,
                      {reinterpret_cast<const std::byte*>(values.data()),
                       DType::kF32,
                       {plan.spec.input_rows, config_.patch_dim()}},
                      out);
    return out;
  }
  /// Values of a picture of 16 x 8 pixels, and the plan of their grid.
  [[nodiscard]] std::vector<float> picture() const {
    const ItemPlan plan = plan_image(config_, preprocess_, 16, 8);
    return patchify(config_, preprocess_, plan, random_pixels(plan));
  }
  void expect_refused(const std::vector<float>& values, const std::string& text) const {
    const ItemPlan plan = plan_grid(config_, Modality::kImage, {1, 2, 4});
    test::expect_error(ErrorCode::kInvalidArgument, text, [&] { (void)fill(plan, values); });
  }

  const Config config_ = small_config();
  const PreprocessConfig preprocess_ = any_size();
};

TEST_F(PixelValues, GiveBackTheBytesOfAPictureAndOfAVideo) {
  for (const ItemPlan& plan :
       {plan_image(config_, preprocess_, 16, 8), plan_image(config_, preprocess_, 24, 32),
        plan_video(config_, preprocess_, 4, 16, 24), plan_video(config_, preprocess_, 3, 24, 16)}) {
    const std::vector<float> values = patchify(config_, preprocess_, plan, random_pixels(plan));
    const ItemPlan tiled = plan_grid(config_, plan.modality, plan.grid);
    EXPECT_EQ(patchify(config_, preprocess_, tiled, fill(tiled, values)), values);
  }
}

TEST_F(PixelValues, APictureKeepsOneFrameAVideoAll) {
  EXPECT_EQ(plan_grid(config_, Modality::kImage, {1, 2, 4}).pixel_bytes, 8U * 16 * 3);
  EXPECT_EQ(plan_grid(config_, Modality::kImage, {1, 2, 4}).num_frames, 1);
  EXPECT_EQ(plan_grid(config_, Modality::kVideo, {3, 2, 4}).pixel_bytes, 3U * 2 * 8 * 16 * 3);
  EXPECT_EQ(plan_grid(config_, Modality::kVideo, {3, 2, 4}).num_frames, 6);
}

TEST_F(PixelValues, PositionsAreThoseOfThePicture) {
  for (const ItemPlan& plan :
       {plan_image(config_, preprocess_, 24, 32), plan_video(config_, preprocess_, 5, 16, 24)}) {
    const auto size = static_cast<std::size_t>(4 * plan.spec.input_rows);
    std::vector<std::int32_t> expected(size);
    std::vector<std::int32_t> got(size);
    std::vector<std::int32_t> sources(size);
    write_patch_rows(config_, plan, 7, expected, sources);
    write_patch_rows(config_, plan_grid(config_, plan.modality, plan.grid), 7, got, sources);
    EXPECT_EQ(got, expected);
    EXPECT_EQ(sources[0], 7);
    EXPECT_EQ(sources[1], 4 * 3) << "a tile is as wide as a patch";
  }
}

TEST_F(PixelValues, AValueThatIsNoByteIsNamed) {
  std::vector<float> values = picture();
  const std::size_t at = 2 * 96 + 32 + 5;                    // row 2: green, first frame, y 1, x 1
  values[at] = values[at + 16] = (100 + 0.5f) / 127.5f - 1;  // in both frames
  expect_refused(values,
                 "pixel_values[2, 37] is -0.211765, expected the value of a byte: the nearest is");
  expect_refused(values, "(mean 0.5, std 0.5, rescale_factor 0.00392157)");
}

TEST_F(PixelValues, AnotherNormalisationIsRefused) {
  std::vector<float> values = picture();
  for (float& value : values) value = (value * 0.5f + 0.5f - 0.48f) / 0.27f;
  expect_refused(values, "pixel_values[0, 0] is");
  for (float& value : values) value = 200;
  expect_refused(
      values, "pixel_values[0, 0] is 200, expected the value of a byte: the nearest is 1 of 255");
  for (float& value : values) value = std::numeric_limits<float>::quiet_NaN();
  expect_refused(values, "pixel_values[0, 0] is nan");
}

TEST_F(PixelValues, APictureWithTwoFramesIsRefused) {
  std::vector<float> values = picture();
  values[96 + 64 + 16 + 3] = values[96 + 64 + 3] > 0 ? -1.0f : 1.0f;  // row 1: blue, second frame
  expect_refused(values, "pixel_values[1, 83] is");
  expect_refused(values, "a picture repeats its frame");
}

TEST_F(PixelValues, OtherShapesAreRefused) {
  const ItemPlan plan = plan_grid(config_, Modality::kImage, {1, 2, 4});
  std::vector<std::uint8_t> out(plan.pixel_bytes);
  const std::vector<float> values(9 * 97);
  for (const Shape& shape : {Shape{7, 96}, Shape{8, 95}, Shape{9, 96}, Shape{8, 3, 32}}) {
    test::expect_error(ErrorCode::kInvalidArgument, "pixel_values must be [8, 96]", [&] {
      fill_pixel_values(config_, preprocess_, plan,
                        {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, shape},
                        out);
    });
  }
}

TEST_F(PixelValues, GridsThatNoItemHasAreRefused) {
  const auto expect_no_grid = [&](Modality modality, const Grid& grid, const std::string& text) {
    test::expect_error(ErrorCode::kInvalidArgument, text,
                       [&] { (void)plan_grid(config_, modality, grid); });
  };
  expect_no_grid(Modality::kImage, {1, 3, 4}, "sides that are multiples of 2, got 1x3x4");
  expect_no_grid(Modality::kImage, {1, 4, 3}, "sides that are multiples of 2, got 1x4x3");
  expect_no_grid(Modality::kVideo, {0, 4, 4}, "must be positive");
  expect_no_grid(Modality::kVideo, {1, -2, -2}, "must be positive");
  expect_no_grid(Modality::kImage, {2, 4, 4}, "of a picture begins with 1, got 2x4x4");
  expect_no_grid(Modality::kVideo, {1 << 20, 1 << 20, 2}, "more pixels than");
  expect_no_grid(Modality::kVideo, {std::int64_t{1} << 62, 2, 2}, "more pixels than");
}

// The processor's own floats and bytes against the picture's preparation.
TEST(PixelValuesGolden, FloatsOfTheProcessorGiveTheBytesOfThePicture) {
  for (const std::string& folder : test::golden_folders("qwen3_vl", "golden.safetensors")) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    const Config config = parse_config(files);
    const PreprocessConfig preprocess = parse_preprocess_config(files, config, MediaOptions{});
    const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
    const ConstTensorView values = file.tensor("gradient_64x200.in.pixel_values");
    const ConstTensorView bytes = file.tensor("gradient_64x200.in.pixel_values_u8");
    Grid grid{};
    std::memcpy(grid.data(), file.tensor("gradient_64x200.in.image_grid_thw").data, sizeof(grid));
    const ItemPlan plan = plan_grid(config, Modality::kImage, grid);
    std::vector<std::uint8_t> pixels(plan.pixel_bytes);
    fill_pixel_values(config, preprocess, plan, values, pixels);
    const std::vector<float> got = patchify(config, preprocess, plan, pixels);
    const media::NormalizeTable table = normalize_table(preprocess);
    const auto plane = static_cast<std::size_t>(config.patch_dim() / 3);
    ASSERT_EQ(got.size(), bytes.bytes());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], table[i / plane % 3][bytes.as<std::uint8_t>()[i]]) << i;
    }
    EXPECT_EQ(std::memcmp(got.data(), values.data, values.bytes()), 0)
        << "the table is the processor's arithmetic, bit for bit";
  }
}

}  // namespace
}  // namespace fovea::qwen3_vl
