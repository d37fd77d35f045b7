// Processor files, plans and view bytes of DeepSeek-OCR 2 in both formats.
#include "models/deepseek_ocr2/processor.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "checkpoint/safetensors.h"
#include "core/file.h"
#include "media/decode_image.h"
#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::deepseek_ocr2 {
namespace {

Processing converted(const std::string& file, const MediaOptions& media = {}) {
  return read_processing(test::config_files({.preprocessor = file}), Format::kTransformers, media);
}

Processing vendor(const std::string& file = "") {
  return read_processing(test::config_files({.processor = file}), Format::kVendor, {});
}

TEST(DeepseekOcr2Processing, TheVendorResizesWithPillowAndTransformersWithTorchvision) {
  EXPECT_EQ(vendor().views.engine, media::ResizeEngine::kPillow);
  EXPECT_EQ(converted("{}").views.engine, media::ResizeEngine::kTorchvision);
  EXPECT_EQ(converted("{}", {.image_backend = ImageBackend::kPillow}).views.engine,
            media::ResizeEngine::kPillow);
}

TEST(DeepseekOcr2Processing, ReadsTheProcessorFiles) {
  const Processing p = converted(R"({"size": {"height": 1024, "width": 1024}, "tile_size": 768,
      "min_patches": 3, "max_patches": 4, "background_color": [1, 2, 255]})");
  EXPECT_EQ(p.views.min_tiles, 3);
  EXPECT_EQ(p.views.max_tiles, 4);
  EXPECT_EQ(p.views.background, (std::array<std::uint8_t, 3>{1, 2, 255}));
  EXPECT_EQ(p.assumptions,
            "missing=preprocessor_config.json keys=image_mean,image_std image_mean=0.5,0.5,0.5 "
            "image_std=0.5,0.5,0.5");
  EXPECT_EQ(vendor(R"({"image_mean": [0, 0, 0]})").table[0][255], 2.0f);
}

TEST(DeepseekOcr2Processing, WithoutTilesTheWholeImageHasTheSizeOfATile) {
  const Processing p = converted(R"({"crop_to_patches": false})");
  EXPECT_EQ(p.views.canvas.side_px, 768);
  const ItemPlan plan = Processor(p).plan_image(2000, 1000);
  EXPECT_EQ(plan.spec.out_rows, 144 + 1);
  EXPECT_FALSE(common::tiling_of(plan).has_value());
}

TEST(DeepseekOcr2Processing, RefusesSizesThatThereAreNoQueriesFor) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& file) {
    test::expect_error(code, message, [&] { (void)converted(file); });
  };
  expect_refused(ErrorCode::kUnsupported, "size", R"({"size": {"height": 512, "width": 512}})");
  expect_refused(ErrorCode::kUnsupported, "tile_size: only 768 is supported",
                 R"({"tile_size": 640})");
  expect_refused(ErrorCode::kUnsupported, "min_patches: only 2 and more are supported, got 1",
                 R"({"min_patches": 1})");
  expect_refused(ErrorCode::kCorruptData, "expected min_patches <= max_patches, got 5 and 4",
                 R"({"min_patches": 5, "max_patches": 4})");
  expect_refused(ErrorCode::kCorruptData, "max_patches: expected a number in [1, 256]",
                 R"({"max_patches": 257})");
  expect_refused(ErrorCode::kUnsupported, "resample: only 3 is supported", R"({"resample": 2})");
  expect_refused(ErrorCode::kUnsupported, "do_resize", R"({"do_resize": false})");
  expect_refused(ErrorCode::kCorruptData, "background_color[2]: expected a byte, got 256",
                 R"({"background_color": [0, 0, 256]})");
}

TEST(DeepseekOcr2Processor, PlansImagesAsTheReference) {
  struct Case {
    std::int64_t width, height, tiles;
  };
  for (const Case& c :
       {Case{1240, 1754, 6}, Case{1920, 1080, 2}, Case{2000, 90, 6}, Case{2600, 1900, 6},
        Case{333, 77, 0}, Case{40, 500, 0}, Case{640, 480, 0}, Case{768, 768, 0}}) {
    SCOPED_TRACE(::testing::Message() << c.width << "x" << c.height);
    for (const Processing& p : {vendor(), converted("{}")}) {
      const ItemPlan plan = Processor(p).plan_image(c.width, c.height);
      EXPECT_EQ(plan.spec.path_tokens[kGlobal], 256);
      EXPECT_EQ(plan.spec.path_tokens[kLocal], 144 * c.tiles);
      EXPECT_EQ(plan.spec.out_rows, 144 * c.tiles + 256 + 1);
      EXPECT_EQ(plan.pixel_bytes,
                static_cast<std::size_t>(3 * (1024 * 1024 + c.tiles * 768 * 768)));
    }
  }
}

TEST(DeepseekOcr2Processor, BothFormatsPlaceImagesOnTheCanvasInTheirWay) {
  const auto place = [](common::CanvasFit fit, std::int64_t width, std::int64_t height) {
    const common::CanvasRect r = fit(1024, width, height);
    return std::vector<std::int64_t>{r.x, r.y, r.width, r.height};
  };
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(place(&common::square_pillow_fit, 480, 320), (List{0, 170, 1024, 683}));
  EXPECT_EQ(place(&scaled_fit, 480, 320), (List{0, 170, 1024, 683}));
  // Half a pixel above the image: 128.5, to the even neighbour or down.
  EXPECT_EQ(place(&common::square_pillow_fit, 641, 480), (List{0, 128, 1024, 767}));
  EXPECT_EQ(place(&common::square_pillow_fit, 1024, 765), (List{0, 130, 1024, 765}));
  EXPECT_EQ(place(&scaled_fit, 1024, 765), (List{0, 129, 1024, 765}));
  test::expect_error(ErrorCode::kInvalidArgument, "is too thin",
                     [] { (void)Processor(vendor()).plan_image(3000, 1); });
}

/// CRC-32 as ZIP archives have it.
std::int64_t crc32(std::span<const std::uint8_t> bytes) {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) table[i] = (table[i] >> 1) ^ (table[i] % 2 * 0xedb88320U);
  }
  std::uint32_t crc = ~0U;
  for (const std::uint8_t byte : bytes) crc = (crc >> 8) ^ table[(crc ^ byte) & 0xff];
  return ~crc;
}

/// CRC-32 of views of one size, [views, 3, side, side].
std::int64_t crc_of(std::span<const std::uint8_t> pixels, std::int64_t side) {
  const auto area = static_cast<std::size_t>(side * side);
  std::vector<std::uint8_t> planes;
  for (std::size_t view = 0; view < pixels.size(); view += 3 * area) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < area; ++i) planes.push_back(pixels[view + 3 * i + c]);
    }
  }
  return crc32(planes);
}

/// Both kinds of views of an image against the reference's, whose names begin with `prefix`.
void expect_views(const Processor& processor, const checkpoint::SafetensorsFile& file,
                  const std::string& prefix, const RgbView& image) {
  const ItemPlan plan = processor.plan_image(image.width_px, image.height_px);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  processor.fill_frame(plan, 0, image, pixels);
  const auto number = [&](const std::string& name) {
    return *file.tensor(prefix + name).as<std::int64_t>();
  };
  const std::span<const std::uint8_t> all = pixels;
  constexpr std::size_t kBaseBytes = 3 * kBaseSide * kBaseSide;
  EXPECT_EQ(number("num_local_patches"), plan.spec.path_tokens[kLocal] / 144);
  EXPECT_EQ(number("pixel_values_u8.crc32"), crc_of(all.first(kBaseBytes), kBaseSide));
  if (plan.spec.path_tokens[kLocal] == 0) return;
  EXPECT_EQ(number("pixel_values_local_u8.crc32"), crc_of(all.subspan(kBaseBytes), kTileSide));
}

TEST(DeepseekOcr2ProcessorGolden, ViewsAreThoseOfTheReference) {
  const auto folders = test::golden_folders("deepseek_ocr2", "golden.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder deepseek_ocr2; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const Processor processor(
        read_processing(checkpoint::read_hf_config(folder), Format::kTransformers, {}));
    const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
      const std::string path = entry.path().string();
      SCOPED_TRACE(path);
      const media::Image image = media::decode_image(read_file(path, 1 << 24), path, {});
      expect_views(processor, file, entry.path().stem().string() + ".in.",
                   {image.rgb.data(), image.width_px, image.height_px});
    }
    const checkpoint::SafetensorsFile small(folder + "/preprocess.safetensors");
    for (const std::string size : {"1x1", "17x9", "40x66"}) {
      SCOPED_TRACE(size);
      const ConstTensorView rgb = small.tensor(size + ".rgb");
      expect_views(processor, small, size + ".",
                   {rgb.as<std::uint8_t>(), rgb.shape[1], rgb.shape[0]});
    }
  }
}

}  // namespace
}  // namespace fovea::deepseek_ocr2
