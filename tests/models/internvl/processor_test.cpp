// From images and frames to views: tilings worked out with the reference, golden bytes, sampling.
#include "models/internvl/processor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "checkpoint/safetensors.h"
#include "core/file.h"
#include "media/decode_image.h"
#include "models/common/processor_file.h"
#include "models/config_files.h"
#include "models/registry.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::internvl {
namespace {

const std::string kChat = R"({"dynamic_image_size": true, "use_thumbnail": true,
                              "max_dynamic_patch": 12})";

Processor chat_processor(const std::string& config = kChat) {
  return Processor(
      read_processing(test::config_files({.config = config}), {.format = Format::kChat}, {}));
}

Processing native_processing(const std::string& image, const std::string& video = "") {
  return read_processing(test::config_files({.preprocessor = image, .video_preprocessor = video}),
                         Config{}, {});
}

TEST(InternvlProcessor, CutsImagesAsTheReference) {
  struct Case {
    std::int64_t width, height, cols, rows, views;
  };
  const Processor chat = chat_processor();
  const Processor native(native_processing("{}"));
  for (const Case& c :
       {Case{448, 448, 1, 1, 1},    Case{224, 224, 1, 1, 1},    Case{633, 633, 1, 1, 1},
        Case{634, 634, 2, 2, 5},    Case{950, 950, 2, 2, 5},    Case{951, 951, 3, 3, 10},
        Case{1024, 1024, 3, 3, 10}, Case{5000, 4900, 3, 3, 10}, Case{640, 480, 4, 3, 13},
        Case{800, 600, 4, 3, 13},   Case{1000, 800, 4, 3, 13},  Case{4032, 3024, 4, 3, 13},
        Case{1920, 1080, 4, 2, 9},  Case{1280, 720, 4, 2, 9},   Case{2000, 1000, 4, 2, 9},
        Case{1080, 1920, 2, 4, 9},  Case{3000, 500, 6, 1, 7},   Case{500, 3000, 1, 6, 7},
        Case{100, 1500, 1, 12, 13}, Case{1344, 896, 3, 2, 7},   Case{896, 448, 2, 1, 3},
        Case{600, 300, 2, 1, 3}}) {
    SCOPED_TRACE(::testing::Message() << c.width << "x" << c.height);
    for (const Processor* processor : {&chat, &native}) {
      const ItemPlan plan = processor->plan_image(c.width, c.height);
      EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, c.rows, c.cols}));
      EXPECT_EQ(plan.resized_width_px, 448 * c.cols);
      EXPECT_EQ(plan.resized_height_px, 448 * c.rows);
      EXPECT_EQ(plan.spec.out_rows, 256 * c.views);
      EXPECT_EQ(plan.spec.path_tokens[0], 256 * c.views);
      EXPECT_EQ(plan.pixel_bytes, static_cast<std::size_t>(c.views) * 448 * 448 * 3);
    }
  }
}

TEST(InternvlProcessor, TilesAndThumbnailCanBeSwitchedOff) {
  EXPECT_EQ(chat_processor("{}").plan_image(1920, 1080).spec.out_rows, 256);
  const Processor without = chat_processor(R"({"dynamic_image_size": true})");
  EXPECT_EQ(without.plan_image(1920, 1080).spec.out_rows, 256 * 2) << "2 x 1 of at most 6 tiles";
}

TEST(InternvlProcessor, AFrameIsOneView) {
  const ItemPlan plan = chat_processor().plan_video(8, 1920, 1080);
  EXPECT_EQ(plan.spec.out_rows, 8 * 256);
  EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{8, 1, 1}));
  EXPECT_EQ(plan.num_frames, 8);
  test::expect_error(ErrorCode::kInvalidArgument, "at least 1 frame",
                     [] { (void)chat_processor().plan_video(0, 64, 64); });
}

TEST(InternvlProcessor, SamplesFramesEvenlyFromTheFirstToTheLast) {
  using Indices = std::vector<std::int64_t>;
  const Processor processor = chat_processor();
  EXPECT_EQ(processor.sample_frames(100, 25, 2), (Indices{0, 14, 28, 42, 56, 70, 84, 99}));
  EXPECT_EQ(processor.sample_frames(3, 30, 60), (Indices{0, 1, 2}));
  EXPECT_EQ(processor.sample_frames(10, 30, 2), Indices{0});
  EXPECT_EQ(processor.sample_frames(100000, 25, 2).size(), 32u);
  EXPECT_EQ(processor.sample_frames(100000, 25, 2).back(), 99999);
  EXPECT_EQ(processor.sample_frames(5, 0, 2), (Indices{0, 1, 2, 3, 4})) << "unknown rate";
}

TEST(InternvlProcessor, RefusesWhatItWouldGetWrong) {
  const auto expect_refused = [](const std::string& message, const std::string& image,
                                 const std::string& video = "") {
    test::expect_error(ErrorCode::kUnsupported, message,
                       [&] { (void)native_processing(image, video); });
  };
  expect_refused("size.width: 384 contradicts config.json, which says 448",
                 R"({"size": {"height": 448, "width": 384}})");
  expect_refused("size.height: 224 contradicts config.json", R"({"size": 224})");
  expect_refused("do_normalize: false is not supported", R"({"do_normalize": false})");
  expect_refused("resample: only 3 is supported, got 2", R"({"resample": 2})");
  test::expect_error(ErrorCode::kCorruptData, "expected min_patches <= max_patches, got 4 and 2",
                     [] { (void)native_processing(R"({"min_patches": 4, "max_patches": 2})"); });
}

TEST(InternvlProcessor, WhatAFileDoesNotSayIsThatOfTheReferencesClass) {
  EXPECT_EQ(native_processing("{}").normalize, common::kClipScaling.table());
  const common::PixelScaling released{.image_mean = {0.485f, 0.456f, 0.406f},
                                      .image_std = {0.229f, 0.224f, 0.225f}};
  EXPECT_EQ(native_processing("").normalize, released.table()) << "without a file";
}

TEST(InternvlProcessor, VideosThatAreProcessedOtherwiseThanImagesAreRefusedAlone) {
  EXPECT_EQ(native_processing("{}", "{}").views.video_refusal, "");
  EXPECT_EQ(native_processing(R"({"image_mean": [0.5, 0.5, 0.5]})", "{}").views.video_refusal,
            "video_preprocessor_config.json: videos with another image_mean than images are not "
            "supported");
  const Processor processor(native_processing("{}", R"({"size": {"height": 384, "width": 384}})"));
  test::expect_error(ErrorCode::kUnsupported, "videos with another size than images",
                     [&] { (void)processor.plan_video(2, 64, 64); });
  EXPECT_EQ(processor.plan_image(448, 448).spec.out_rows, 256);
}

TEST(InternvlProcessor, WithoutAFileSaysWhatItTakesForGranted) {
  EXPECT_NE(native_processing("").views.assumptions.find("missing=model/preprocessor_config.json"),
            std::string::npos);
  EXPECT_EQ(native_processing(R"({"image_mean": [0.5, 0.5, 0.5], "image_std": [1, 1, 1]})")
                .views.assumptions,
            "");
  EXPECT_EQ(chat_processor().assumptions(), "") << "fixed in the authors' code";
}

TEST(InternvlProcessor, SaysWhereEveryValueComesFrom) {
  EXPECT_EQ(native_processing(R"({"max_patches": 6})", R"({"size": 448})").views.sources,
            "image.file=\"preprocessor_config.json\" image.given=max_patches "
            "image.class_default=size,image_mean,image_std,rescale_factor,resample,min_patches "
            "video.file=\"video_preprocessor_config.json\" video.given=size "
            "video.class_default=image_mean,image_std,rescale_factor");
  EXPECT_EQ(chat_processor().sources(),
            "image.file=\"config.json\" "
            "image.given=dynamic_image_size,max_dynamic_patch,use_thumbnail "
            "image.class_default=min_dynamic_patch");
}

/// [views, side, side, 3] as [views, 3, side, side].
std::vector<std::uint8_t> channels_first(const std::vector<std::uint8_t>& pixels,
                                         std::size_t side) {
  std::vector<std::uint8_t> planes;
  const std::size_t area = side * side;
  for (std::size_t view = 0; view < pixels.size() / (3 * area); ++view) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < area; ++i) planes.push_back(pixels[3 * (view * area + i) + c]);
    }
  }
  return planes;
}

/// The views of frames of one size, as the processor of a golden checkpoint makes them.
std::vector<std::uint8_t> views_of(const std::string& folder, std::span<const RgbView> frames,
                                   Modality modality) {
  const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
  const Format format =
      known_architecture(files) == "InternVLChatModel" ? Format::kChat : Format::kNative;
  const Config config = parse_config(files, format);
  const Processor processor(read_processing(files, config, {}));
  const RgbView& first = frames.front();
  const ItemPlan plan =
      modality == Modality::kImage
          ? processor.plan_image(first.width_px, first.height_px)
          : processor.plan_video(std::ssize(frames), first.width_px, first.height_px);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  for (std::size_t f = 0; f < frames.size(); ++f) {
    processor.fill_frame(plan, static_cast<std::int64_t>(f), frames[f], pixels);
  }
  return channels_first(pixels, static_cast<std::size_t>(config.view.side_px));
}

std::vector<std::uint8_t> bytes_of(const checkpoint::SafetensorsFile& file,
                                   const std::string& name) {
  const ConstTensorView view = file.tensor(name);
  return {view.as<std::uint8_t>(), view.as<std::uint8_t>() + view.bytes()};
}

class InternvlGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(InternvlGolden, ViewsOfImagesAreTheBytesOfTheReference) {
  int images = 0;
  for (const std::string& folder : test::golden_folders(GetParam(), "golden.safetensors")) {
    const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
      const std::string path = entry.path().string();
      SCOPED_TRACE(path);
      const media::Image image = media::decode_image(read_file(path, 1 << 24), path, {});
      const RgbView view{image.rgb.data(), image.width_px, image.height_px};
      EXPECT_EQ(views_of(folder, {&view, 1}, Modality::kImage),
                bytes_of(file, entry.path().stem().string() + ".in.pixel_values_u8"));
      ++images;
    }
  }
  EXPECT_GE(images, 2);
}

TEST_P(InternvlGolden, ViewsOfAVideoAreTheBytesOfTheReference) {
  const std::string folder = test::golden_folder(GetParam(), "golden.safetensors");
  const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
  const ConstTensorView stored = file.tensor("video.frames");
  const std::vector<std::uint8_t> rgb = bytes_of(file, "video.frames");
  std::vector<RgbView> frames;
  for (std::int64_t f = 0; f < stored.shape[0]; ++f) {
    frames.push_back(
        {rgb.data() + f * stored.shape[1] * stored.shape[2] * 3, stored.shape[2], stored.shape[1]});
  }
  EXPECT_EQ(views_of(folder, frames, Modality::kVideo), bytes_of(file, "video.in.pixel_values_u8"));
}

INSTANTIATE_TEST_SUITE_P(Formats, InternvlGolden, ::testing::Values("internvl", "internvl_chat"),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace fovea::internvl
