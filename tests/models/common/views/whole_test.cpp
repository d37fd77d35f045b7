// Whole images as one square view: sizes, crops, and what processor files say.
#include "models/common/views/whole.h"

#include <gtest/gtest.h>

#include "models/common/frames.h"
#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::common {
namespace {

WholeImage image_of(const std::string& file, const char* processor_class = "CLIPImageProcessor") {
  return read_whole_image(test::config_files({.preprocessor = file}), {}, processor_class);
}

ItemPlan plan(const WholeImage& image, std::int64_t width, std::int64_t height) {
  const SquareView view{.side_px = image.side_px, .patch_px = 16};
  return WholeImageProcessor(image, view, {view.patches() + 1}).plan_image(width, height);
}

TEST(WholeImage, ASilentFileHasTheValuesOfItsClass) {
  const WholeImage clip = image_of("{}");
  EXPECT_EQ(clip.shortest_edge, 224);
  EXPECT_EQ(clip.side_px, 224);
  EXPECT_EQ(clip.filter, media::ResizeFilter::kBicubic);
  EXPECT_EQ(clip.scaling, kClipScaling);
  const WholeImage siglip = image_of(R"({"image_processor_type": "SiglipImageProcessor"})");
  EXPECT_EQ(siglip.shortest_edge, 0);
  EXPECT_EQ(siglip.height_px, 224);
  EXPECT_EQ(siglip.scaling, PixelScaling{});
  EXPECT_EQ(image_of(R"({"image_processor_type": "ViTImageProcessorFast"})").filter,
            media::ResizeFilter::kBilinear);
  const WholeImage dino = image_of("", "DINOv3ViTImageProcessor");
  EXPECT_TRUE(dino.in_floats);
  EXPECT_EQ(dino.assumptions,
            "missing=model/preprocessor_config.json size=224 image_mean=0.485,0.456,0.406 "
            "image_std=0.229,0.224,0.225");
}

TEST(WholeImage, ReadsSizesInAllSpellings) {
  const WholeImage object =
      image_of(R"({"size": {"shortest_edge": 256}, "crop_size": {"height": 224,
      "width": 224}, "resample": 2})");
  EXPECT_EQ(object.shortest_edge, 256);
  EXPECT_EQ(object.side_px, 224);
  EXPECT_EQ(object.filter, media::ResizeFilter::kBilinear);
  const WholeImage numbers = image_of(R"({"size": 336, "crop_size": 336,
      "feature_extractor_type": "CLIPFeatureExtractor"})");
  EXPECT_EQ(numbers.shortest_edge, 336);
  EXPECT_EQ(numbers.side_px, 336);
  const WholeImage square = image_of(R"({"size": {"height": 384, "width": 384},
      "image_processor_type": "SiglipImageProcessor"})");
  EXPECT_EQ(square.shortest_edge, 0);
  EXPECT_EQ(square.side_px, 384);
}

TEST(WholeImage, RefusesWhatItWouldGetWrong) {
  const auto expect_refused = [](const std::string& message, const std::string& file) {
    test::expect_error(ErrorCode::kUnsupported, message, [&] { (void)image_of(file); });
  };
  expect_refused("image_processor_type: expected one of CLIPImageProcessor",
                 R"({"image_processor_type": "ConvNextImageProcessor"})");
  expect_refused("do_center_crop: false with a shortest_edge", R"({"do_center_crop": false})");
  expect_refused("expected square views, got 224x448",
                 R"({"crop_size": {"height": 448, "width": 224}})");
  expect_refused("resample: expected 2 (bilinear) or 3 (bicubic), got 1", R"({"resample": 1})");
  expect_refused("shortest_edge and longest_edge", R"({"size": {"shortest_edge": 224,
      "longest_edge": 448}})");
  expect_refused("do_rescale: false is not supported", R"({"do_rescale": false})");
  expect_refused("do_center_crop: true is not supported for DINOv3ViTImageProcessor",
                 R"({"image_processor_type": "DINOv3ViTImageProcessorFast",
                     "do_center_crop": true})");
  test::expect_error(ErrorCode::kUnsupported,
                     "views of 336 pixels a side contradict config.json, which says 224", [] {
                       check_view_side(test::config_files({}),
                                       image_of(R"({"size": 336, "crop_size": 336})"), 224);
                     });
}

TEST(WholeImage, AShortestEdgeScalesTheOtherDown) {
  const WholeImage image = image_of("{}");
  const ItemPlan wide = plan(image, 1920, 1080);
  EXPECT_EQ(wide.resized_height_px, 224);
  EXPECT_EQ(wide.resized_width_px, 398);  // 224 * 1920 / 1080 = 398.2
  EXPECT_EQ(plan(image, 333, 500).resized_height_px, 336);
  EXPECT_EQ(plan(image, 7, 7).resized_width_px, 224);
  EXPECT_EQ(wide.spec.out_rows, 197);
  EXPECT_EQ(wide.pixel_bytes, 224U * 224 * 3);
  test::expect_error(ErrorCode::kInvalidArgument, "above 67108864 pixels",
                     [&] { (void)plan(image, 1, 65'535); });
}

TEST(WholeImage, AVectorIsOneRowOfAsManyTokens) {
  const WholeImage image = image_of("{}");
  const SquareView view{.side_px = 224, .patch_px = 16};
  const ItemSpec spec = WholeImageProcessor(image, view, {197, true}).plan_image(64, 64).spec;
  EXPECT_EQ(spec.out_rows, 1);
  EXPECT_EQ(spec.path_tokens[0], 197);
}

/// The view of an image of `width` x `height` that is not resized, whose bytes count from 0.
std::vector<std::uint8_t> view_of_bytes(std::int64_t width, std::int64_t height,
                                        const WholeImage& image) {
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width * height * 3));
  for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<std::uint8_t>(i / 3 + 1);
  const SquareView view{.side_px = image.side_px, .patch_px = 1};
  const WholeImageProcessor processor(image, view, {1});
  std::vector<std::uint8_t> out(view.pixel_bytes());
  processor.fill_frame(processor.plan_image(width, height), 0, {rgb.data(), width, height}, out);
  std::vector<std::uint8_t> red;
  for (std::size_t i = 0; i < out.size(); i += 3) red.push_back(out[i]);
  return red;
}

TEST(WholeImage, TheMiddleIsTheView) {
  // 5 x 2 pixels, of which (5 - 2) / 2 = 1 column is left out in front and 2 behind
  const WholeImage cut = image_of(R"({"size": 2, "crop_size": 2})");
  EXPECT_EQ(view_of_bytes(5, 2, cut), (std::vector<std::uint8_t>{2, 3, 7, 8}));
}

TEST(WholeImage, WhatIsSmallerThanTheViewLiesOnBlack) {
  // 3 x 2 pixels in 4 x 4: one black row above and one below, the odd column behind
  const WholeImage padded = image_of(R"({"size": 2, "crop_size": 4})");
  EXPECT_EQ(view_of_bytes(3, 2, padded),
            (std::vector<std::uint8_t>{0, 0, 0, 0, 1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace fovea::common
