// Pixel values of the processor become the bytes that the tower would read of the image.
#include "models/common/grid/processor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "checkpoint/safetensors.h"
#include "models/common/grid/inputs.h"
#include "models/common/grid/same_size.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::common {
namespace {

using Grid = std::array<std::int64_t, 3>;

/// What patchify reads for all rows of an item, in the order of pixel_values.
std::vector<float> patchify(const GridGeometry& geometry, const ItemPlan& plan,
                            const std::vector<std::uint8_t>& pixels) {
  const media::NormalizeTable table = PixelScaling{}.table();
  const auto rows = static_cast<std::size_t>(plan.spec.input_rows);
  std::vector<std::int32_t> positions(4 * rows);
  std::vector<std::int32_t> sources(4 * rows);
  write_patch_rows(geometry, plan, 0, plan.pixel_bytes, positions, sources);
  std::vector<float> values;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::int32_t* const source = &sources[4 * r];
    for (std::int64_t c = 0; c < 3; ++c) {
      for (std::int64_t f = 0; f < geometry.temporal_patch_size; ++f) {
        for (std::int64_t y = 0; y < geometry.patch_size; ++y) {
          for (std::int64_t x = 0; x < geometry.patch_size; ++x) {
            const std::int64_t place = source[3] > 0 ? c * source[3] + x : 3 * x + c;
            const auto at =
                static_cast<std::size_t>(source[0] + f * source[2] + y * source[1] + place);
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

/// Patches of 4 x 4 pixels, so that grids stay small.
class PixelValues : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<std::uint8_t> fill(const ItemPlan& plan,
                                               const std::vector<float>& values) const {
    std::vector<std::uint8_t> out(plan.pixel_bytes);
    fill_pixel_values(geometry_, {}, plan,
                      {reinterpret_cast<const std::byte*>(values.data()),
                       DType::kF32,
                       {plan.spec.input_rows, geometry_.patch_dim()}},
                      out);
    return out;
  }
  /// Values of an image of 16 x 8 pixels.
  [[nodiscard]] std::vector<float> image() const {
    const ItemPlan plan = processor_.plan_image(16, 8);
    return patchify(geometry_, plan, random_pixels(plan));
  }
  [[nodiscard]] ItemPlan plan_of_image() const {
    return processor_.plan_grid(Modality::kImage, {1, 2, 4});
  }
  void expect_refused(const std::vector<float>& values, const std::string& text) const {
    test::expect_error(ErrorCode::kInvalidArgument, text,
                       [&] { (void)fill(plan_of_image(), values); });
  }

  const GridProcessor processor_{test::same_size(4)};
  const GridGeometry geometry_ = processor_.processing().geometry;
};

TEST_F(PixelValues, GiveBackTheBytesOfAnImageAndOfAVideo) {
  for (const ItemPlan& plan :
       {processor_.plan_image(16, 8), processor_.plan_image(24, 32),
        processor_.plan_video(4, 16, 24), processor_.plan_video(3, 24, 16)}) {
    const std::vector<float> values = patchify(geometry_, plan, random_pixels(plan));
    const ItemPlan tiled = processor_.plan_grid(plan.modality, plan.grid);
    EXPECT_EQ(patchify(geometry_, tiled, fill(tiled, values)), values);
  }
}

TEST_F(PixelValues, BytesAreReadWhereTheyAre) {
  for (const ItemPlan& plan : {processor_.plan_image(16, 8), processor_.plan_image(24, 32),
                               processor_.plan_video(4, 16, 24)}) {
    const std::vector<std::uint8_t> pixels = random_pixels(plan);
    const std::vector<float> values = patchify(geometry_, plan, pixels);
    const media::NormalizeTable table = PixelScaling{}.table();
    std::vector<std::uint8_t> bytes;  // [patches, patch_dim], as the processor has them
    for (const float value : values) {
      const auto& of_byte = table[0];  // of all channels
      bytes.push_back(
          static_cast<std::uint8_t>(std::ranges::find(of_byte, value) - of_byte.begin()));
    }
    const ItemPlan there = processor_.plan_patches(plan.modality, plan.grid, geometry_.patch_dim());
    EXPECT_EQ(there.pixel_bytes, bytes.size());
    EXPECT_EQ(there.spec.input_rows, plan.spec.input_rows);
    EXPECT_EQ(there.unit_bytes[0] * static_cast<std::size_t>(plan.spec.units_on(0).count),
              bytes.size());
    EXPECT_EQ(patchify(geometry_, there, bytes), values);
  }
  test::expect_error(ErrorCode::kInvalidArgument, "a patch of this model has 96 values, got 95",
                     [&] {
                       (void)processor_.plan_patches(Modality::kImage, {1, 2, 4}, 95);
                     });
}

TEST_F(PixelValues, AValueThatIsNoByteIsNamed) {
  std::vector<float> values = image();
  const std::size_t at = 2 * 96 + 32 + 5;                    // row 2: green, first frame, y 1, x 1
  values[at] = values[at + 16] = (100 + 0.5f) / 127.5f - 1;  // in both frames
  expect_refused(values,
                 "pixel_values[2, 37] is -0.211765, expected the value of a byte: the nearest is");
  expect_refused(values, "(mean 0.5, std 0.5, rescale_factor 0.00392157)");
}

TEST_F(PixelValues, AnotherNormalisationIsRefused) {
  std::vector<float> values = image();
  for (float& value : values) value = (value * 0.5f + 0.5f - 0.48f) / 0.27f;
  expect_refused(values, "pixel_values[0, 0] is");
  for (float& value : values) value = 200;
  expect_refused(
      values, "pixel_values[0, 0] is 200, expected the value of a byte: the nearest is 1 of 255");
  for (float& value : values) value = std::numeric_limits<float>::quiet_NaN();
  expect_refused(values, "pixel_values[0, 0] is nan");
}

TEST_F(PixelValues, AnImageWithTwoFramesIsRefused) {
  std::vector<float> values = image();
  values[96 + 64 + 16 + 3] = values[96 + 64 + 3] > 0 ? -1.0f : 1.0f;  // row 1: blue, second frame
  expect_refused(values, "pixel_values[1, 83] is");
  expect_refused(values, "an image repeats its frame");
}

TEST_F(PixelValues, OtherShapesAreRefused) {
  const ItemPlan plan = plan_of_image();
  std::vector<std::uint8_t> out(plan.pixel_bytes);
  const std::vector<float> values(9 * 97);
  for (const Shape& shape : {Shape{7, 96}, Shape{8, 95}, Shape{9, 96}, Shape{8, 3, 32}}) {
    test::expect_error(ErrorCode::kInvalidArgument, "pixel_values must be [8, 96]", [&] {
      fill_pixel_values(geometry_, {}, plan,
                        {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, shape},
                        out);
    });
  }
}

TEST_F(PixelValues, APlanOfAnImageIsNoPlanOfItsGrid) {
  const std::vector<float> values = image();
  test::expect_error(ErrorCode::kInternal, "pixel values need a plan of their grid",
                     [&] { (void)fill(processor_.plan_image(16, 8), values); });
}

// The processor's own floats and bytes against the image's preparation.
TEST(PixelValuesGolden, FloatsOfTheProcessorGiveTheBytesOfTheImage) {
  const GridProcessor processor(GridProcessing{});
  const GridGeometry geometry;
  for (const std::string& folder : test::golden_folders("qwen3_vl", "golden.safetensors")) {
    const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
    const ConstTensorView values = file.tensor("gradient_64x200.in.pixel_values");
    const ConstTensorView bytes = file.tensor("gradient_64x200.in.pixel_values_u8");
    Grid grid{};
    std::memcpy(grid.data(), file.tensor("gradient_64x200.in.image_grid_thw").data, sizeof(grid));
    const ItemPlan plan = processor.plan_grid(Modality::kImage, grid);
    std::vector<std::uint8_t> pixels(plan.pixel_bytes);
    processor.fill_pixel_values(plan, values, pixels);
    const std::vector<float> got = patchify(geometry, plan, pixels);
    const media::NormalizeTable table = PixelScaling{}.table();
    const auto plane = static_cast<std::size_t>(geometry.patch_dim() / 3);
    ASSERT_EQ(got.size(), bytes.bytes());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], table[i / plane % 3][bytes.as<std::uint8_t>()[i]]) << i;
    }
    EXPECT_EQ(std::memcmp(got.data(), values.data, values.bytes()), 0)
        << "the table is the processor's arithmetic, bit for bit";
  }
}

}  // namespace
}  // namespace fovea::common
