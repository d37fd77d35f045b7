// Views of LFM2-VL: sizes worked out with the reference, and the bytes of its images.
#include "models/lfm2_vl/processor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>

#include "checkpoint/safetensors.h"
#include "core/file.h"
#include "media/decode_image.h"
#include "models/config_files.h"
#include "models/lfm2_vl/config.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/property.h"

namespace fovea::lfm2_vl {
namespace {

using Sides = std::vector<std::array<std::int64_t, 2>>;  ///< height and width in patches

constexpr common::GridGeometry kGeometry{.patch_size = 16, .temporal_patch_size = 1};

Processor processor_of(const std::string& file) {
  return Processor(read_processing(test::config_files({.preprocessor = file}), kGeometry, {}));
}

Sides sides_of(const Processor& processor, const ItemPlan& plan) {
  Sides sides;
  for (const ItemPlan& view : processor.processing().views_of(plan)) {
    sides.push_back({view.grid[1], view.grid[2]});
  }
  return sides;
}

/// `tiles` tiles of 32 x 32 patches and a thumbnail.
Sides tiled(std::size_t tiles, std::int64_t height, std::int64_t width) {
  Sides sides(tiles, {32, 32});
  sides.push_back({height, width});
  return sides;
}

TEST(Lfm2VlProcessor, PlansImagesAsTheReference) {
  struct Case {
    std::int64_t width, height;
    Sides views;
  };
  const Processor processor = processor_of("{}");
  for (const Case& c :
       {Case{1240, 1754, tiled(6, 38, 26)}, Case{1920, 1080, tiled(8, 24, 42)},
        Case{2600, 1900, tiled(6, 26, 36)}, Case{2000, 90, {{6, 124}}}, Case{333, 77, {{8, 34}}},
        Case{40, 500, {{58, 6}}}, Case{640, 480, {{26, 36}}}}) {
    SCOPED_TRACE(std::to_string(c.width) + "x" + std::to_string(c.height));
    const ItemPlan plan = processor.plan_image(c.width, c.height);
    EXPECT_EQ(sides_of(processor, plan), c.views);
    std::int64_t patches = 0;
    for (const auto& [height, width] : c.views) patches += height * width;
    EXPECT_EQ(plan.spec.input_rows, patches);
    EXPECT_EQ(plan.spec.out_rows, patches / 4);
    EXPECT_EQ(plan.pixel_bytes, static_cast<std::size_t>(patches * 768));
    EXPECT_FALSE(plan.has_grid_thw);
  }
}

TEST(Lfm2VlProcessor, SplittingAndThumbnailsCanBeSwitchedOff) {
  const Processor whole = processor_of(R"({"do_image_splitting": false})");
  EXPECT_EQ(sides_of(whole, whole.plan_image(1920, 1080)), (Sides{{24, 42}}));
  const Processor tiles = processor_of(R"({"use_thumbnail": false})");
  EXPECT_EQ(sides_of(tiles, tiles.plan_image(1920, 1080)), Sides(8, {32, 32}));
}

TEST(Lfm2VlProcessor, ASingleTileIsASquareWithoutThumbnail) {
  const Processor processor = processor_of(R"({"min_tiles": 1})");
  const ItemPlan plan = processor.plan_image(1000, 1000);
  EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, 2, 2})) << "more than half of its pixels";
  const Processor one = processor_of(R"({"min_tiles": 1, "max_tiles": 3})");
  EXPECT_EQ(sides_of(one, one.plan_image(1100, 1000)), (Sides{{32, 32}}));
}

TEST(Lfm2VlProcessor, NoViewHasFewerTokensThanItSays) {
  for (const char* file : {"{}", R"({"min_image_tokens": 1, "max_image_tokens": 6})",
                           R"({"tile_size": 64, "max_pixels_tolerance": 0.5})"}) {
    const Processor processor = processor_of(file);
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    test::for_all(300, [&](std::mt19937_64& generator) {
      const std::int64_t width = test::uniform(generator, 1, 3000);
      const std::int64_t height = test::uniform(generator, 1, width);
      for (const auto& [rows, cols] : sides_of(processor, processor.plan_image(width, height))) {
        least = std::min(least, rows * cols / 4);
      }
    });
    EXPECT_GE(least, processor.processing().least_view_tokens) << file;
  }
}

TEST(Lfm2VlProcessor, RefusesFilesThatContradictTheTower) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& file) {
    test::expect_error(code, message, [&] { (void)processor_of(file); });
  };
  expect_refused(ErrorCode::kCorruptData, "encoder_patch_size: 14 contradicts config.json",
                 R"({"encoder_patch_size": 14})");
  expect_refused(ErrorCode::kCorruptData, "downsample_factor: 1 contradicts",
                 R"({"downsample_factor": 1})");
  expect_refused(ErrorCode::kCorruptData, "expected min_tiles <= max_tiles, got 11 and 10",
                 R"({"min_tiles": 11})");
  expect_refused(ErrorCode::kUnsupported, "tile_size: 500 is not a multiple of 32",
                 R"({"tile_size": 500})");
  expect_refused(ErrorCode::kUnsupported, "resample: only 2 is supported, got 3",
                 R"({"resample": 3})");
}

TEST(Lfm2VlProcessor, TakesImagesAlone) {
  const Processor processor = processor_of("{}");
  test::expect_error(ErrorCode::kUnsupported, "no pixel values", [&] {
    (void)processor.plan_grid(Modality::kImage, {1, 2, 2});
  });
  test::expect_error(ErrorCode::kUnsupported, "no videos",
                     [&] { (void)processor.plan_video(2, 64, 64); });
  test::expect_error(ErrorCode::kInvalidArgument, "has no area",
                     [&] { (void)processor.plan_image(0, 10); });
}

TEST(Lfm2VlProcessor, SaysWhatItAssumesAndWhereValuesComeFrom) {
  EXPECT_EQ(processor_of("").assumptions(),
            "missing=model/preprocessor_config.json min_image_tokens=64 max_image_tokens=256 "
            "max_tiles=10 tile_size=512 image_mean=0.5,0.5,0.5 image_std=0.5,0.5,0.5");
  EXPECT_EQ(processor_of(R"({"tile_size": 256})").sources(),
            "image.file=\"preprocessor_config.json\" image.given=tile_size "
            "image.class_default=min_image_tokens,max_image_tokens,do_image_splitting,min_tiles,"
            "max_tiles,use_thumbnail,max_pixels_tolerance,image_mean,image_std");
}

/// CRC-32 as ZIP archives have it.
std::int64_t crc32_of(const std::vector<std::uint8_t>& bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return std::int64_t{~crc};
}

/// Patches of all views, row by row of each: pixels with their channels, as in pixel_values.
std::vector<std::uint8_t> patches_of(const Processor& processor, const ItemPlan& plan,
                                     std::span<const std::uint8_t> pixels) {
  const std::int64_t side = processor.processing().geometry.patch_size;
  std::vector<std::uint8_t> patches;
  for (const ItemPlan& view : processor.processing().views_of(plan)) {
    for (std::int64_t patch = 0; patch < view.spec.input_rows; ++patch) {
      const std::int64_t top = patch / view.grid[2] * side;
      const std::int64_t left = patch % view.grid[2] * side;
      for (std::int64_t y = top; y < top + side; ++y) {
        const auto line =
            pixels.subspan(static_cast<std::size_t>((y * view.resized_width_px + left) * 3),
                           static_cast<std::size_t>(side * 3));
        patches.insert(patches.end(), line.begin(), line.end());
      }
    }
    pixels = pixels.subspan(view.pixel_bytes);
  }
  return patches;
}

/// Compares the views of an image with what a file holds of them. @param name `<name>.*` in it.
void expect_views(const Processor& processor, const checkpoint::SafetensorsFile& file,
                  const std::string& name, const media::Image& image) {
  SCOPED_TRACE(name);
  const ItemPlan plan = processor.plan_image(image.width_px, image.height_px);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  processor.fill_frame(plan, 0, {image.rgb.data(), image.width_px, image.height_px}, pixels);
  std::int64_t crc = 0;
  std::memcpy(&crc, file.tensor(name + ".pixel_values_u8.crc32").data, sizeof(crc));
  EXPECT_EQ(crc32_of(patches_of(processor, plan, pixels)), crc);
}

TEST(Lfm2VlProcessor, ViewsOfGoldenImagesAreTheBytesOfTheReference) {
  const auto folders = test::golden_folders("lfm2_vl", "golden.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder lfm2_vl; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    const Processor processor(read_processing(files, parse_config(files).grid, {}));
    const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
      const std::string path = entry.path().string();
      expect_views(processor, file, entry.path().stem().string() + ".in",
                   media::decode_image(read_file(path, 1 << 24), path, {}));
    }
    const checkpoint::SafetensorsFile sizes(folder + "/preprocess.safetensors");
    for (const checkpoint::TensorEntry& tensor : sizes.header().tensors) {
      if (!tensor.name.ends_with(".rgb")) continue;
      const ConstTensorView rgb = sizes.tensor(tensor.name);
      const auto* const first = rgb.as<std::uint8_t>();
      expect_views(processor, sizes, tensor.name.substr(0, tensor.name.size() - 4),
                   {tensor.shape[1], tensor.shape[0], {first, first + rgb.bytes()}});
    }
  }
}

}  // namespace
}  // namespace fovea::lfm2_vl
