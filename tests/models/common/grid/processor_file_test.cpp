// Processor files of families over grids: every spelling, every refusal, and options of the user.
#include "models/common/grid/processor_file.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::common {
namespace {

/// Classes that take limits beside `size` for images alone.
constexpr ProcessorClasses kClasses{.image = {.range = {65536, 16777216}, .overrides_size = true},
                                    .video = {.range = {4096, 25165824}}};

GridProcessing read(const test::ConfigTexts& texts, const MediaOptions& media = {}) {
  GridProcessing processing;
  processing.video_size = [](std::int64_t, std::int64_t, std::int64_t) { return Size2d{32, 32}; };
  read_grid_processor(test::config_files(texts), kClasses, media, processing);
  return processing;
}

GridProcessing read_image_file(const std::string& preprocessor) {
  return read({.preprocessor = preprocessor});
}

void expect_refused(ErrorCode code, const std::string& preprocessor, const std::string& message) {
  test::expect_error(code, message, [&] { (void)read_image_file(preprocessor); });
}

TEST(GridProcessorFile, WhatNoFileSaysIsThatOfTheClass) {
  const GridProcessing p = read({});
  EXPECT_EQ(p.limits.image.max_pixels, 16777216);
  EXPECT_EQ(p.limits.video.min_pixels, 4096);
  EXPECT_EQ(p.scaling.image_std, (std::array<float, 3>{0.5f, 0.5f, 0.5f}));
  EXPECT_EQ(p.engine, media::ResizeEngine::kTorchvision);
  EXPECT_EQ(p.filter, media::ResizeFilter::kBicubic);
}

TEST(GridProcessorFile, TakesEverySpellingOfTheLimits) {
  const auto limits = [](const char* preprocessor) {
    return read_image_file(preprocessor).limits.image;
  };
  EXPECT_EQ(limits("{\"size\": {\"shortest_edge\": 100, \"longest_edge\": 200}}").min_pixels, 100);
  EXPECT_EQ(limits("{\"size\": {\"min_pixels\": 7, \"max_pixels\": 9}}").max_pixels, 9);
  EXPECT_EQ(limits("{\"size\": {\"shortest_edge\": 1}, \"max_pixels\": 50}").max_pixels, 50);
  EXPECT_EQ(limits("{\"min_pixels\": null}").min_pixels, 65536);
}

TEST(GridProcessorFile, LimitsBesideSizeCountWhereTheClassTakesThem) {
  constexpr const char* kBoth = R"({"size": {"shortest_edge": 100, "longest_edge": 200},
                                    "min_pixels": 7, "max_pixels": 9})";
  const GridLimits both = read({.preprocessor = kBoth, .video_preprocessor = kBoth}).limits;
  EXPECT_EQ(both.image.min_pixels, 7);
  EXPECT_EQ(both.image.max_pixels, 9);
  EXPECT_EQ(both.video.min_pixels, 100);
  EXPECT_EQ(both.video.max_pixels, 200);
  EXPECT_EQ(read({.video_preprocessor = R"({"max_pixels": 9})"}).limits.video.max_pixels, 25165824);
}

TEST(GridProcessorFile, LimitsMayCountTokens) {
  constexpr ProcessorClass kTokens{.range = {1000, 4000}, .token_pixels = 100};
  const auto read_tokens = [&](const std::string& file) {
    GridProcessing processing;
    read_grid_processor(test::config_files({.preprocessor = file}),
                        {.image = kTokens, .video = kTokens}, {}, processing);
    return processing;
  };
  const GridProcessing p = read_tokens(
      R"({"min_image_tokens": 16, "max_image_tokens": 50, "size": {"longest_edge": 1}})");
  EXPECT_EQ(p.limits.image.min_pixels, 1600);
  EXPECT_EQ(p.limits.video.max_pixels, 5000);
  EXPECT_NE(p.sources.find("max_image_tokens"), std::string::npos) << p.sources;
  const GridProcessing silent = read_tokens(R"({"size": {"longest_edge": 1}})");
  EXPECT_EQ(silent.limits.image.max_pixels, 4000);
  EXPECT_NE(silent.assumptions.find("max_image_tokens"), std::string::npos) << silent.assumptions;
}

TEST(GridProcessorFile, ASizeWithoutOneOfItsEdgesIsRefused) {
  expect_refused(ErrorCode::kCorruptData, R"({"size": {"shortest_edge": 100}})",
                 "preprocessor_config.json: size: expected shortest_edge and longest_edge, "
                 "longest_edge is missing");
  expect_refused(ErrorCode::kCorruptData, R"({"size": {"longest_edge": 100}})",
                 "preprocessor_config.json: size: expected shortest_edge and longest_edge, "
                 "shortest_edge is missing");
  EXPECT_EQ(read({.processor = R"({"video_processor": {"size": {"shortest_edge": 5},
                                                       "max_pixels": 50}})"})
                .video_refusal,
            "processor_config.json: video_processor.size: expected shortest_edge and longest_edge, "
            "longest_edge is missing")
      << "images are encoded all the same";
}

TEST(GridProcessorFile, VideosThatAreScaledOtherwiseThanImagesAreRefusedAlone) {
  const auto refusal = [](const char* image, const char* video) {
    return read({.preprocessor = image, .video_preprocessor = video}).video_refusal;
  };
  EXPECT_EQ(refusal("{}", R"({"image_mean": [0.5, 0.5, 0.5]})"), "");
  EXPECT_EQ(refusal(R"({"image_mean": [0, 0, 0], "resample": 2})", "{}"),
            "video_preprocessor_config.json: videos with another image_mean, resample than images "
            "are not supported");
  const GridProcessor processor(
      read({.video_preprocessor = R"({"image_std": [1, 1, 1], "rescale_factor": 1})"}));
  for (const bool grid : {false, true}) {
    test::expect_error(ErrorCode::kUnsupported, "another image_std, rescale_factor than images",
                       [&] {
                         (void)(grid ? processor.plan_grid(Modality::kVideo, {1, 2, 2})
                                     : processor.plan_video(2, 32, 32));
                       });
  }
  EXPECT_NO_THROW((void)processor.plan_grid(Modality::kImage, {1, 2, 2}));
}

TEST(GridProcessorFile, ReadsScalingAndFilter) {
  const GridProcessing p = read_image_file(R"({"image_mean": [0, 0.25, 1],
      "image_std": [1, 2, 3], "rescale_factor": 0.5, "resample": 2})");
  EXPECT_EQ(p.scaling.image_mean, (std::array<float, 3>{0, 0.25f, 1}));
  EXPECT_EQ(p.scaling.image_std, (std::array<float, 3>{1, 2, 3}));
  EXPECT_EQ(p.scaling.rescale_factor, 0.5);
  EXPECT_EQ(p.filter, media::ResizeFilter::kBilinear);
}

TEST(GridProcessorFile, TheFileOfImagesServesVideosWithoutOne) {
  const std::string image = R"({"size": {"shortest_edge": 5, "longest_edge": 50}})";
  EXPECT_EQ(read({.preprocessor = image}).limits.video.max_pixels, 50);
  const GridLimits both =
      read({.preprocessor = image,
            .video_preprocessor = R"({"size": {"shortest_edge": 5, "longest_edge": 9999}})"})
          .limits;
  EXPECT_EQ(both.image.max_pixels, 50);
  EXPECT_EQ(both.video.max_pixels, 9999);
}

TEST(GridProcessorFile, OptionsOfTheUserComeFirst) {
  const GridProcessing p =
      read({.preprocessor = R"({"min_pixels": 5, "max_pixels": 50})"},
           {.image_backend = ImageBackend::kPillow, .min_pixels = 7, .max_pixels = 70});
  EXPECT_EQ(p.limits.image.min_pixels, 7);
  EXPECT_EQ(p.limits.image.max_pixels, 70);
  EXPECT_EQ(p.engine, media::ResizeEngine::kPillow);
  test::expect_error(ErrorCode::kInvalidArgument,
                     "expected 0 < min_pixels <= max_pixels <= 1099511627776, got 65536 (the "
                     "checkpoint's) and 100",
                     [] { (void)read({}, {.max_pixels = 100}); });
}

TEST(GridProcessorFile, RefusesLimitsThatWouldOverflow) {
  expect_refused(
      ErrorCode::kCorruptData, "{\"max_pixels\": 1099511627777}",
      "preprocessor_config.json: expected 0 < min_pixels <= max_pixels <= 1099511627776, got "
      "65536 and 1099511627777");
}

TEST(GridProcessorFile, RefusalsNameFileAndKey) {
  expect_refused(ErrorCode::kCorruptData, "{\"patch_size\": 14}",
                 "preprocessor_config.json.patch_size: 14 contradicts config.json, which says 16");
  expect_refused(ErrorCode::kCorruptData, "{\"merge_size\": 3}",
                 "preprocessor_config.json.merge_size: 3 contradicts config.json, which says 2");
  expect_refused(ErrorCode::kCorruptData, "{\"temporal_patch_size\": 1}", "temporal_patch_size: 1");
  expect_refused(ErrorCode::kCorruptData, "{\"image_mean\": [0.5]}", "expected 3 numbers");
  expect_refused(ErrorCode::kUnsupported, "{\"do_resize\": false}",
                 "do_resize: false is not supported");
  expect_refused(ErrorCode::kUnsupported, "{\"resample\": 1}",
                 "resample: 2 (bilinear) and 3 (bicubic) are supported, got 1");
  expect_refused(ErrorCode::kCorruptData, "{\"min_pixels\": 9, \"max_pixels\": 8}",
                 "min_pixels <= max_pixels");
}

TEST(GridProcessorFile, RefusesFactorsThatAreNotAboveZero) {
  expect_refused(ErrorCode::kCorruptData, "{\"rescale_factor\": 0}",
                 "preprocessor_config.json: rescale_factor: expected a number above 0, got 0");
  expect_refused(ErrorCode::kCorruptData, "{\"image_std\": [0.5, 0, 0.5]}",
                 "preprocessor_config.json: image_std: expected 3 numbers above 0, got 0");
}

TEST(GridProcessorFile, RefusesSizesOfAnotherKind) {
  for (const char* size : {"\"zz\"", "0", "-1", "[1]"}) {
    expect_refused(ErrorCode::kCorruptData, std::string("{\"size\": ") + size + "}",
                   "preprocessor_config.json: size: expected an object, got ");
  }
  expect_refused(ErrorCode::kCorruptData, "{\"size\": {\"height\": 224, \"width\": 224}}",
                 "preprocessor_config.json: size: expected shortest_edge and longest_edge");
}

TEST(GridProcessorFile, SaysWhatAProcessorFileLeavesOpen) {
  const auto assumed = [](const char* preprocessor) {
    return read_image_file(preprocessor).assumptions;
  };
  EXPECT_EQ(assumed(R"({"size": {"shortest_edge": 1, "longest_edge": 2},
                        "image_mean": [0, 0, 0], "image_std": [1, 1, 1]})"),
            "");
  EXPECT_EQ(assumed(R"({"size": {"shortest_edge": 1, "longest_edge": 2}, "image_std": [1, 1, 1]})"),
            "missing=preprocessor_config.json keys=image_mean image_mean=0.5,0.5,0.5");
  EXPECT_EQ(assumed(R"({"size": null, "image_mean": [0, 0, 0]})"),
            "missing=preprocessor_config.json keys=size,image_std image_pixels=65536..16777216 "
            "image_std=0.5,0.5,0.5 video_pixels=4096..25165824");
  EXPECT_EQ(assumed(R"({"min_pixels": 1, "max_pixels": 2, "image_mean": [0, 0, 0],
                        "image_std": [1, 1, 1]})"),
            "missing=preprocessor_config.json keys=size video_pixels=4096..25165824");
  EXPECT_EQ(assumed("").find("missing=model/preprocessor_config.json image_pixels="), 0u);
}

TEST(GridProcessorFile, SaysWhereEveryValueComesFrom) {
  EXPECT_EQ(
      read({}).sources,
      "image.assumed=shortest_edge,longest_edge,image_mean,image_std,rescale_factor,resample "
      "video.assumed=shortest_edge,longest_edge,image_mean,image_std,rescale_factor,resample");
  EXPECT_EQ(read({.preprocessor = R"({"size": {"shortest_edge": 1, "longest_edge": 9},
                                      "max_pixels": 5, "image_mean": [0, 0, 0]})",
                  .processor = R"({"video_processor": {"resample": 3, "min_pixels": 7}})"},
                 {.min_pixels = 2})
                .sources,
            "image.file=\"preprocessor_config.json\" image.given=max_pixels,image_mean "
            "image.class_default=image_std,rescale_factor,resample image.option=min_pixels "
            "video.file=\"processor_config.json: video_processor\" video.given=resample "
            "video.class_default=shortest_edge,longest_edge,image_mean,image_std,rescale_factor");
}

}  // namespace
}  // namespace fovea::common
