// Processor files of families over square views of one size.
#include "models/common/views/processing.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::common {
namespace {

const SquareView kView{.side_px = 224, .patch_px = 14};

ViewProcessing processing_of(const std::string& file, const MediaOptions& media = {}) {
  return read_view_processing(test::config_files({.preprocessor = file}), kView, media,
                              {.filter = media::ResizeFilter::kBilinear, .scaling = kClipScaling},
                              {"min_size"});
}

TEST(ViewProcessing, ReadsTheFile) {
  const ViewProcessing p = processing_of(R"({"size": {"height": 224, "width": 224}, "resample": 2,
      "image_mean": [0.1, 0.2, 0.3], "image_std": [1, 2, 3], "rescale_factor": 0.5})");
  EXPECT_EQ(p.view.side_px, 224);
  EXPECT_EQ(p.filter, media::ResizeFilter::kBilinear);
  EXPECT_EQ(p.engine, media::ResizeEngine::kTorchvision);
  EXPECT_EQ(p.scaling, (PixelScaling{{0.1f, 0.2f, 0.3f}, {1, 2, 3}, 0.5}));
  EXPECT_EQ(p.assumptions, "");
  EXPECT_EQ(processing_of("{}", {.image_backend = ImageBackend::kPillow}).engine,
            media::ResizeEngine::kPillow);
}

TEST(ViewProcessing, ASilentFileHasTheValuesOfTheClassAndNoFileAHalf) {
  EXPECT_EQ(processing_of("{}").scaling, kClipScaling);
  EXPECT_EQ(processing_of("").scaling, PixelScaling{});
  EXPECT_EQ(processing_of("").assumptions,
            "missing=model/preprocessor_config.json image_mean=0.5,0.5,0.5 image_std=0.5,0.5,0.5");
}

TEST(ViewProcessing, SaysWhereEveryValueComesFrom) {
  EXPECT_EQ(processing_of(R"({"resample": 2, "min_size": 14})").sources,
            "image.file=\"preprocessor_config.json\" image.given=resample,min_size "
            "image.class_default=size,image_mean,image_std,rescale_factor");
}

TEST(ViewProcessing, RefusesWhatItWouldGetWrong) {
  const auto expect_refused = [](const std::string& message, const std::string& file) {
    test::expect_error(ErrorCode::kUnsupported, message, [&] { (void)processing_of(file); });
  };
  expect_refused("size.height: 448 contradicts config.json, which says 224", R"({"size": 448})");
  expect_refused("resample: only 2 is supported, got 3", R"({"resample": 3})");
  expect_refused("do_resize: false is not supported", R"({"do_resize": false})");
}

}  // namespace
}  // namespace fovea::common
