// Views and crops of Molmo2: sizes worked out with the reference, and the bytes of its images.
#include "models/molmo2/processor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "checkpoint/safetensors.h"
#include "core/file.h"
#include "media/decode_image.h"
#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/property.h"

namespace fovea::molmo2 {
namespace {

Processing processing_of(const std::string& image, const std::string& video = "") {
  return read_processing(test::config_files({.preprocessor = image, .video_preprocessor = video}),
                         Config{});
}

Processor processor_of(const std::string& image, const std::string& video = "") {
  return Processor(processing_of(image, video));
}

using Crops = std::array<std::int64_t, 3>;

TEST(Molmo2Processor, PlansImagesAsTheReference) {
  struct Case {
    std::int64_t width, height;
    std::int64_t high_rows, high_cols;  ///< tokens of the crops
    std::int64_t crops;
  };
  const Processor processor = processor_of("{}");
  for (const Case& c :
       {Case{1240, 1754, 33, 23, 6}, Case{1920, 1080, 23, 42, 8}, Case{2000, 90, 14, 14, 1},
        Case{2600, 1900, 23, 33, 6}, Case{333, 77, 14, 14, 1}, Case{40, 500, 14, 14, 1},
        Case{640, 480, 23, 23, 4}}) {
    SCOPED_TRACE(std::to_string(c.width) + "x" + std::to_string(c.height));
    const ItemPlan plan = processor.plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid[1] * plan.grid[2], c.crops);
    EXPECT_EQ(plan.spec.input_rows, (1 + c.crops) * 729);
    EXPECT_EQ(plan.spec.out_rows, 196 + c.high_rows * c.high_cols);
    EXPECT_EQ(plan.pixel_bytes, static_cast<std::size_t>((1 + c.crops) * 378 * 378 * 3));
  }
}

TEST(Molmo2Processor, FramesOfAVideoAreUnits) {
  const Processor processor = processor_of("{}");
  const ItemPlan plan = processor.plan_video(6, 1920, 1080);
  EXPECT_EQ(plan.spec.out_rows, 6 * 81);
  EXPECT_EQ(plan.spec.units[0].count, 6);
  EXPECT_EQ(plan.spec.units[0].rows, 81);
  EXPECT_EQ(plan.unit_bytes[0], 378u * 378 * 3);
  EXPECT_EQ(processor_of("{}", R"({"pooling_size": [2, 4]})").plan_video(1, 9, 9).spec.out_rows,
            14 * 7);
}

TEST(Molmo2Processor, NoItemsHaveMoreViewsThanItSays) {
  for (const char* file : {"{}", R"({"max_crops": 24})", R"({"pooling_size": [5, 1]})"}) {
    const Processor processor = processor_of(file);
    test::for_all(100, [&](std::mt19937_64& generator) {
      std::int64_t tokens = 0;
      std::int64_t views = 0;
      for (int i = 0; i < 3; ++i) {
        const ItemPlan plan = processor.plan_image(test::uniform(generator, 1, 4000),
                                                   test::uniform(generator, 1, 4000));
        tokens += plan.spec.out_rows;
        views += plan.spec.input_rows / 729;
      }
      EXPECT_LE(views, processor.most_views(tokens));
    });
    const std::int64_t frame = processor.plan_video(1, 64, 64).spec.out_rows;
    EXPECT_LE(5, processor.most_views(5 * frame));
  }
}

TEST(Molmo2Processor, TokensOfAnItemAreAsManyAsItsRows) {
  const Processor processor = processor_of("{}");
  for (const auto& [width, height] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{64, 64}, {1920, 1080}, {90, 2000}}) {
    const ItemPlan plan = processor.plan_image(width, height);
    TokenPatches tokens;
    processor.add_tokens(plan, 1, 0, tokens);
    EXPECT_EQ(tokens.count(), plan.spec.out_rows);
    for (const std::int64_t patch : tokens.patches) EXPECT_LT(patch, plan.spec.input_rows);
  }
}

TEST(Molmo2Processor, SamplesAsTheReference) {
  const Processor processor = processor_of("{}");
  EXPECT_EQ(processor.sample_frames(10, 10, 4), (std::vector<std::int64_t>{0, 2, 5, 7}));
  EXPECT_EQ(processor.sample_frames(3, 30, 1), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(processor.sample_frames(3, 0, 2), (std::vector<std::int64_t>{0, 1, 2}));
}

// Values of its sample_frames() with a file that names num_frames and max_fps.
TEST(Molmo2Processor, SamplesAtMostTheFramesOfItsFile) {
  EXPECT_EQ(processor_of("{}").sample_frames(1199, 5, 2).size(), 64u);
  const Processor processor = processor_of("{}", R"({"num_frames": 4, "max_fps": 2})");
  EXPECT_EQ(processor.sample_frames(310, 30, 2), (std::vector<std::int64_t>{0, 77, 155, 232}));
  EXPECT_EQ(processor.sample_frames(45, 30, 2), (std::vector<std::int64_t>{0, 15, 30}));
}

TEST(Molmo2Processor, RefusesWhatItCannotHonour) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& image) {
    test::expect_error(code, message, [&] { (void)processor_of(image); });
  };
  expect_refused(ErrorCode::kUnsupported, "size.height: 512 contradicts config.json",
                 R"({"size": {"height": 512, "width": 512}})");
  expect_refused(ErrorCode::kUnsupported, "patch_size: only 14", R"({"patch_size": 16})");
  expect_refused(ErrorCode::kUnsupported, "resample: only 2", R"({"resample": 3})");
  expect_refused(ErrorCode::kUnsupported, "do_normalize: false", R"({"do_normalize": false})");
  expect_refused(ErrorCode::kUnsupported, "20 and 7 leave nothing of 27 patches",
                 R"({"overlap_margins": [20, 7]})");
  expect_refused(ErrorCode::kCorruptData, "expected a number in [1, 64], got 0",
                 R"({"pooling_size": [0, 2]})");
  const Processor processor = processor_of("{}");
  test::expect_error(ErrorCode::kUnsupported, "no pixel values", [&] {
    (void)processor.plan_grid(Modality::kImage, {1, 2, 2});
  });
  const std::string scaled = R"({"do_rescale": true, "do_normalize": true, )";
  test::expect_error(ErrorCode::kUnsupported, "another image_mean than images", [&] {
    (void)processor_of("{}", scaled + R"("image_mean": [0, 0, 0]})").plan_video(2, 64, 64);
  });
  test::expect_error(ErrorCode::kUnsupported, "do_rescale without do_normalize",
                     [&] { (void)processor_of("{}", R"({"do_rescale": true})"); });
}

TEST(Molmo2Processor, FramesAreRawUnlessTheFileSaysOtherwise) {
  EXPECT_TRUE(processing_of("{}", "{}").raw_videos);
  EXPECT_FALSE(processing_of("{}", R"({"do_rescale": true, "do_normalize": true})").raw_videos);
  EXPECT_FALSE(processing_of("").raw_videos) << "no file";
}

TEST(Molmo2Processor, SaysWhatItAssumes) {
  EXPECT_EQ(processor_of("").assumptions(),
            "missing=model/preprocessor_config.json max_crops=8 image_mean=0.5,0.5,0.5 "
            "image_std=0.5,0.5,0.5");
}

/// CRC-32 as ZIP archives have it.
std::int64_t zip_crc(const std::vector<std::uint8_t>& bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return std::int64_t{~crc};
}

/// Patches of all views, row by row of each: pixels with their channels, as in pixel_values.
std::vector<std::uint8_t> patches_of(const common::SquareView& view,
                                     const std::vector<std::uint8_t>& pixels) {
  std::vector<std::uint8_t> patches;
  for (std::size_t first = 0; first < pixels.size(); first += view.pixel_bytes()) {
    common::for_each_patch(view, [&](std::int64_t y, std::int64_t x) {
      for (std::int64_t line = 0; line < view.patch_px; ++line) {
        const std::int64_t at = ((y * view.patch_px + line) * view.side_px + x * view.patch_px) * 3;
        const auto from = pixels.begin() + static_cast<std::ptrdiff_t>(first) + at;
        patches.insert(patches.end(), from, from + view.patch_px * 3);
      }
    });
  }
  return patches;
}

/// Compares the views of an image with what a file holds of them. @param name `<name>.*` in it.
void expect_views(const Processor& processor, const checkpoint::SafetensorsFile& file,
                  const std::string& name, const RgbView& image) {
  SCOPED_TRACE(name);
  const ItemPlan plan = processor.plan_image(image.width_px, image.height_px);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  processor.fill_frame(plan, 0, image, pixels);
  std::int64_t crc = 0;
  std::memcpy(&crc, file.tensor(name + ".pixel_values_u8.crc32").data, sizeof(crc));
  EXPECT_EQ(zip_crc(patches_of(processor.processing().views.view, pixels)), crc);
  TokenPatches tokens;
  processor.add_tokens(plan, 1, 0, tokens);
  const ConstTensorView want = file.tensor(name + ".image_token_pooling");  // -1 where none is
  ASSERT_EQ(want.shape[0], tokens.count());
  std::vector<std::int64_t> patches;
  for (std::int64_t i = 0; i < want.shape.elements(); ++i) {
    if (want.as<std::int32_t>()[i] >= 0) patches.push_back(want.as<std::int32_t>()[i]);
  }
  EXPECT_EQ(tokens.patches, patches);
}

TEST(Molmo2Processor, ViewsOfGoldenImagesAreTheBytesOfTheReference) {
  const auto folders = test::golden_folders("molmo2", "golden.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder molmo2; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    const Processor processor(read_processing(files, parse_config(files)));
    const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
      const std::string path = entry.path().string();
      const media::Image image = media::decode_image(read_file(path, 1 << 24), path, {});
      expect_views(processor, file, entry.path().stem().string() + ".in",
                   {image.rgb.data(), image.width_px, image.height_px});
    }
    const checkpoint::SafetensorsFile sizes(folder + "/preprocess.safetensors");
    for (const std::string size : {"1x1", "17x9", "40x66"}) {
      const ConstTensorView rgb = sizes.tensor(size + ".rgb");
      expect_views(processor, sizes, size, {rgb.as<std::uint8_t>(), rgb.shape[1], rgb.shape[0]});
    }
  }
}

}  // namespace
}  // namespace fovea::molmo2
