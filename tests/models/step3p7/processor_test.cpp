// Sizes and pixels of Step-3.7.
#include "models/step3p7/processor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "checkpoint/safetensors.h"
#include "core/file.h"
#include "media/decode_image.h"
#include "models/config_files.h"
#include "models/load_model.h"
#include "support/crc32.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::step3p7 {
namespace {

Processor processor_of(const std::string& file, const Config& config = {}) {
  return Processor(read_processing(test::config_files({.preprocessor = file}), config, {}));
}

TEST(Step3p7Processor, PlansTheWindowsOfTheReference) {
  struct Example {
    std::int64_t width, height, windows;
  };
  const Processor processor = processor_of("");
  for (const Example& e :
       {Example{1240, 1754, 12}, Example{1920, 1080, 8}, Example{2000, 90, 23},
        Example{2600, 1900, 20}, Example{333, 77, 5}, Example{40, 500, 13}, Example{640, 480, 0},
        Example{728, 728, 0}, Example{729, 729, 4}, Example{660, 300, 2}, Example{20, 100, 0}}) {
    SCOPED_TRACE(::testing::Message() << e.width << "x" << e.height);
    const ItemPlan plan = processor.plan_image(e.width, e.height);
    EXPECT_EQ(plan.spec.out_rows, 169 + 81 * e.windows);
    EXPECT_EQ(plan.spec.path_tokens[kGlobal], 169);
    EXPECT_EQ(plan.spec.path_tokens[kLocal], 81 * e.windows);
    EXPECT_EQ(plan.grid[1] * plan.grid[2], e.windows);
    EXPECT_EQ(plan.pixel_bytes, static_cast<std::size_t>(3 * (728 * 728 + e.windows * 504 * 504)));
  }
}

TEST(Step3p7Processor, TheTargetIsTheLargestSizeOfAView) {
  const auto target = [](std::int64_t width, std::int64_t height) {
    const ItemPlan plan = processor_of("").plan_image(width, height);
    return std::pair(plan.target_width_px, plan.target_height_px);
  };
  EXPECT_EQ(target(1280, 720), std::pair(std::int64_t{1512}, std::int64_t{1008}));
  EXPECT_EQ(target(16000, 12000), std::pair(std::int64_t{3024}, std::int64_t{2520}));
  EXPECT_EQ(target(20, 100), std::pair(std::int64_t{0}, std::int64_t{0})) << "it is padded first";
}

TEST(Step3p7Processor, AWindowThatTheImageDoesNotFillIsStretched) {
  const Processor processor = processor_of("");
  const ItemPlan plan = processor.plan_image(900, 500);
  const std::vector<std::uint8_t> white(900 * 500 * 3, 255);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  processor.fill_frame(plan, 0, {white.data(), 900, 500}, pixels);
  EXPECT_EQ(pixels, std::vector<std::uint8_t>(plan.pixel_bytes, 255));
}

TEST(Step3p7Processor, RefusesFilesThatContradictTheTower) {
  const auto expect_refused = [](const std::string& message, const std::string& file) {
    test::expect_error(ErrorCode::kUnsupported, message, [&] { (void)processor_of(file); });
  };
  expect_refused("patch_size: 500 is not a multiple of 56", R"({"patch_size": 500})");
  expect_refused("resample", R"({"resample": 3})");
  expect_refused("size.height: 448 contradicts config.json, which says 728",
                 R"({"size": {"height": 448, "width": 728}})");
  expect_refused("do_normalize: false", R"({"do_normalize": false})");
  test::expect_error(ErrorCode::kInvalidArgument, "has no area",
                     [] { (void)processor_of("").plan_image(0, 4); });
}

TEST(Step3p7Processor, SaysWhatItAssumes) {
  EXPECT_EQ(processor_of("").assumptions(),
            "missing=model/preprocessor_config.json patch_size=504 "
            "image_mean=0.481455,0.457828,0.408211 image_std=0.26863,0.261303,0.275777");
  EXPECT_EQ(processor_of(R"({"patch_size": 504})").sources(),
            "image.file=\"preprocessor_config.json\" image.given=patch_size "
            "image.class_default=max_image_size,image_mean,image_std");
}

/// The views of one path of an item, [views, 3, side, side].
std::vector<std::uint8_t> planes_of(const ItemPlan& plan, std::span<const std::uint8_t> pixels,
                                    std::size_t path) {
  std::vector<std::uint8_t> planes;
  for (; !pixels.empty(); pixels = pixels.subspan(plan.unit_bytes[path])) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = c; i < plan.unit_bytes[path]; i += 3) planes.push_back(pixels[i]);
    }
  }
  return planes;
}

void expect_views(const ItemProcessor& processor, const checkpoint::SafetensorsFile& file,
                  const std::string& name, const RgbView& image) {
  SCOPED_TRACE(name);
  const ItemPlan plan = processor.plan_image(image.width_px, image.height_px);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  processor.fill_frame(plan, 0, image, pixels);
  const auto expect_crc = [&](const std::string& key, std::span<const std::uint8_t> views,
                              std::size_t path) {
    std::int64_t crc = 0;
    std::memcpy(&crc, file.tensor(name + key).data, sizeof(crc));
    EXPECT_EQ(test::crc32_of(planes_of(plan, views, path)), crc) << key;
  };
  const std::span<const std::uint8_t> all = pixels;
  expect_crc("pixel_values_u8.crc32", all.first(plan.unit_bytes[kGlobal]), kGlobal);
  const bool has_windows = file.find(name + "pixel_values_local_u8.crc32") != nullptr;
  EXPECT_EQ(has_windows, plan.grid[1] > 0);
  if (!has_windows) return;
  expect_crc("pixel_values_local_u8.crc32", all.subspan(plan.unit_bytes[kGlobal]), kLocal);
}

TEST(Step3p7Processor, ViewsAreTheBytesOfTheReference) {
  for (const std::string& folder : test::golden_folders("step3p7", "golden.safetensors")) {
    const auto model = plan_model(checkpoint::read_hf_config(folder), {});
    const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
      const std::string path = entry.path().string();
      const media::Image image = media::decode_image(read_file(path, 1 << 24), path, {});
      expect_views(model->processor(), file, entry.path().stem().string() + ".in.",
                   {image.rgb.data(), image.width_px, image.height_px});
    }
    const checkpoint::SafetensorsFile sizes(folder + "/preprocess.safetensors");
    for (const std::string size : {"1x1", "17x9", "40x66"}) {
      const ConstTensorView rgb = sizes.tensor(size + ".rgb");
      expect_views(model->processor(), sizes, size + ".",
                   {rgb.as<std::uint8_t>(), rgb.shape[1], rgb.shape[0]});
    }
  }
}

}  // namespace
}  // namespace fovea::step3p7
