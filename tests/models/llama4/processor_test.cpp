// Canvases and tiles of Llama 4: examples worked out with the reference, and its bytes.
#include "models/llama4/processor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "checkpoint/safetensors.h"
#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::llama4 {
namespace {

Processing processing_of(const std::string& file, std::int64_t side_px = 336) {
  Config config;
  config.view.side_px = side_px;
  return read_processing(test::config_files({.preprocessor = file}), config, {});
}

TEST(Llama4Processor, PlacesImagesAsTheReference) {
  struct Case {
    std::int64_t height, width;
    common::Tiling canvas;
    std::int64_t resized_height, resized_width;
  };
  const Processing p = processing_of("");
  for (const Case& c :
       {Case{336, 336, {1, 1}, 336, 336}, Case{300, 200, {1, 1}, 336, 224},
        Case{200, 300, {1, 1}, 224, 336}, Case{337, 336, {1, 2}, 337, 336},
        Case{480, 640, {2, 2}, 480, 640}, Case{768, 1024, {4, 3}, 768, 1024},
        Case{720, 1280, {4, 3}, 720, 1280}, Case{1080, 1920, {5, 3}, 945, 1680},
        Case{1920, 1080, {3, 5}, 1680, 945}, Case{3024, 4032, {4, 3}, 1008, 1344},
        Case{100, 2000, {6, 1}, 100, 2000}, Case{1344, 1344, {4, 4}, 1344, 1344},
        Case{5000, 5000, {4, 4}, 1344, 1344}, Case{336, 5376, {16, 1}, 336, 5376}}) {
    SCOPED_TRACE(std::to_string(c.width) + "x" + std::to_string(c.height));
    const Placement place = place_image(p, c.width, c.height);
    EXPECT_EQ(place.canvas, c.canvas);
    EXPECT_EQ(place.height_px, c.resized_height);
    EXPECT_EQ(place.width_px, c.resized_width);
    const std::int64_t tiles = c.canvas.count() + (c.canvas.count() > 1 ? 1 : 0);
    const ItemPlan plan = Processor(p).plan_image(c.width, c.height);
    EXPECT_EQ(plan.spec.out_rows, 144 * tiles);
    EXPECT_EQ(plan.spec.input_rows, 576 * tiles);
  }
}

TEST(Llama4Processor, RoundsRatiosToACanvasAsTheReference) {
  // 1568 in f32, 1567 in double; and 240 * (224 / 320) is 168 in f32 alone.
  EXPECT_EQ(place_image(processing_of(""), 2618, 1683).width_px, 1568);
  const Placement small = place_image(processing_of(R"({"max_patches": 4})", 112), 320, 240);
  EXPECT_EQ(small.width_px, 224);
  EXPECT_EQ(small.height_px, 168);
}

TEST(Llama4Processor, WhatAFileDoesNotSayIsThatOfTheReferencesClass) {
  const Processing p = processing_of("{}");
  EXPECT_EQ(p.scaling, common::PixelScaling{}) << "0.5, 0.5 and 1/255";
  EXPECT_EQ(p.max_patches, 16);
  EXPECT_FALSE(p.resize_to_max_canvas);
}

TEST(Llama4Processor, TakesTheLargestCanvasWhenAsked) {
  const Processing p = processing_of(R"({"resize_to_max_canvas": true})");
  EXPECT_EQ(place_image(p, 300, 200).canvas, (common::Tiling{5, 3}));
  EXPECT_EQ(place_image(p, 640, 480).canvas, (common::Tiling{4, 3}));
  EXPECT_EQ(place_image(p, 336, 336).canvas, (common::Tiling{4, 4}));
  EXPECT_EQ(place_image(p, 336, 336).width_px, 1344);
}

TEST(Llama4Processor, TheTargetIsTheImageOnItsCanvasAndTheWholeImageBesideIt) {
  const auto target = [](std::int64_t width, std::int64_t height) {
    const ItemPlan plan = Processor(processing_of("")).plan_image(width, height);
    return std::pair(plan.target_width_px, plan.target_height_px);
  };
  EXPECT_EQ(target(4000, 3000), std::pair(std::int64_t{1344}, std::int64_t{1008}));
  EXPECT_EQ(target(9000, 600), std::pair(std::int64_t{5040}, std::int64_t{336}));
}

TEST(Llama4Processor, TilesAreThoseOfTheReferenceAtEverySize) {
  for (const std::string& folder : test::golden_folders("llama4", "preprocess.safetensors")) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    const Processor processor(read_processing(files, parse_config(files), {}));
    const auto side = static_cast<std::size_t>(processor.processing().tile.side_px);
    const checkpoint::SafetensorsFile file(folder + "/preprocess.safetensors");
    for (const checkpoint::TensorEntry& entry : file.header().tensors) {
      if (!entry.name.ends_with(".rgb")) continue;
      SCOPED_TRACE(entry.name);
      const ConstTensorView rgb = file.tensor(entry.name);
      const RgbView image{rgb.as<std::uint8_t>(), rgb.shape[1], rgb.shape[0]};
      const ItemPlan plan = processor.plan_image(image.width_px, image.height_px);
      std::vector<std::uint8_t> pixels(plan.pixel_bytes);
      processor.fill_frame(plan, 0, image, pixels);
      const ConstTensorView want =
          file.tensor(entry.name.substr(0, entry.name.size() - 3) + "pixel_values_u8");
      ASSERT_EQ(want.bytes(), pixels.size());
      std::size_t wrong = 0;  // [tile, channel, y, x] against [tile, y, x, channel]
      for (std::size_t i = 0; i < pixels.size(); ++i) {
        const std::size_t tile = i / (side * side * 3);
        const std::size_t within = i / 3 % (side * side);
        const std::size_t channel = i % 3;
        wrong += pixels[i] != want.as<std::uint8_t>()[(tile * 3 + channel) * side * side + within]
                     ? 1
                     : 0;
      }
      EXPECT_EQ(wrong, 0u);
    }
  }
}

TEST(Llama4Processor, RefusesFilesThatContradictTheTower) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& file) {
    test::expect_error(code, message, [&] { (void)processing_of(file); });
  };
  expect_refused(ErrorCode::kUnsupported, "size.width: 224 contradicts config.json, which says 336",
                 R"({"size": {"height": 336, "width": 224}})");
  expect_refused(ErrorCode::kUnsupported, "resample: only 2 is supported, got 3",
                 R"({"resample": 3})");
  expect_refused(ErrorCode::kUnsupported, "do_normalize: false is not supported",
                 R"({"do_normalize": false})");
  test::expect_error(ErrorCode::kInvalidArgument, "has no area",
                     [] { (void)Processor(processing_of("")).plan_image(0, 3); });
}

TEST(Llama4Processor, SaysWhereEveryValueComesFrom) {
  EXPECT_EQ(
      processing_of(R"({"size": 336, "max_patches": 4})").sources,
      "image.file=\"preprocessor_config.json\" image.given=size,max_patches "
      "image.class_default=resize_to_max_canvas,image_mean,image_std,rescale_factor,resample");
}

TEST(Llama4Processor, SaysWhatItAssumesWithoutAFile) {
  EXPECT_EQ(processing_of("").assumptions,
            "missing=model/preprocessor_config.json max_patches=16 image_mean=0.5,0.5,0.5 "
            "image_std=0.5,0.5,0.5");
}

}  // namespace
}  // namespace fovea::llama4
