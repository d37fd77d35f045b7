// Processor file, plans and view bytes of DeepSeek-OCR: worked examples and golden pixels.
#include "models/deepseek_ocr/processor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "checkpoint/safetensors.h"
#include "core/check.h"
#include "core/file.h"
#include "media/decode_image.h"
#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/image_names.h"

namespace fovea::deepseek_ocr {
namespace {

TEST(DeepseekOcrProcessing, DefaultsAreTheModeOfTheVendor) {
  const Processing p = read_processing(test::config_files({}), {});
  EXPECT_EQ(p.views[kGlobal].side_px, 1024);
  EXPECT_EQ(p.views[kLocal].side_px, 640);
  EXPECT_EQ(p.min_tiles, 2);
  EXPECT_EQ(p.max_tiles, 6);
  EXPECT_EQ(p.scaling.image_mean, (std::array<float, 3>{0.5f, 0.5f, 0.5f}));
  EXPECT_EQ(p.engine, media::ResizeEngine::kPillow);
}

TEST(DeepseekOcrProcessing, ReadsTheProcessorFile) {
  const Processing p = read_processing(
      test::config_files({.processor = R"({"image_mean": [0, 0.25, 1], "image_std": [1, 2, 3]})"}),
      {.image_backend = ImageBackend::kTorchvision});
  EXPECT_EQ(p.scaling.image_mean, (std::array<float, 3>{0, 0.25f, 1}));
  EXPECT_EQ(p.scaling.image_std, (std::array<float, 3>{1, 2, 3}));
  EXPECT_EQ(p.engine, media::ResizeEngine::kTorchvision);
}

TEST(DeepseekOcrProcessing, RefusesListsOfAnotherLengthAndDeviationsThatAreNotAboveZero) {
  const auto expect_refused = [](const std::string& message, const std::string& processor) {
    test::expect_error(ErrorCode::kCorruptData, message, [&] {
      (void)read_processing(test::config_files({.processor = processor}), {});
    });
  };
  expect_refused("processor_config.json: image_mean: expected 3 numbers, got 1",
                 R"({"image_mean": [0.5]})");
  expect_refused("image_std: expected 3 numbers, got 4", R"({"image_std": [1, 1, 1, 1]})");
  expect_refused("processor_config.json: image_std: expected 3 numbers above 0, got 0",
                 R"({"image_std": [0, 1, 1]})");
}

TEST(DeepseekOcrProcessing, SaysWhatAProcessorFileLeavesOpen) {
  const auto assumed = [](const std::string& processor) {
    return read_processing(test::config_files({.processor = processor}), {}).scaling.assumptions;
  };
  EXPECT_EQ(assumed(R"({"image_mean": [0, 0, 0]})"),
            "missing=model/processor_config.json keys=image_std image_std=0.5,0.5,0.5");
  EXPECT_EQ(assumed(""),
            "missing=model/processor_config.json image_mean=0.5,0.5,0.5 "
            "image_std=0.5,0.5,0.5");
  EXPECT_EQ(assumed(R"({"image_mean": [0, 0, 0], "image_std": [1, 1, 1]})"), "");
}

TEST(DeepseekOcrProcessing, SaysWhereEveryValueComesFrom) {
  const auto files = test::config_files({.processor = R"({"image_mean": [0, 0, 0]})"});
  EXPECT_EQ(read_processing(files, {}).scaling.sources,
            "image.file=\"processor_config.json\" image.given=image_mean "
            "image.class_default=image_std");
}

/// A worked example. `local` is the number of assembled rows of the tiles.
struct Example {
  std::int64_t width, height, cols, rows, tiles, fit_width, fit_height, at_x, at_y, local, total;
  std::int64_t max_tiles = 6;
};

const std::vector<Example> kExamples{{640, 640, 1, 1, 0, 1024, 1024, 0, 0, 0, 273},
                                     {480, 320, 1, 1, 0, 1024, 683, 0, 170, 0, 273},
                                     {641, 480, 3, 2, 6, 1024, 767, 0, 128, 620, 893},
                                     {1000, 800, 2, 2, 4, 1024, 819, 0, 102, 420, 693},
                                     {1500, 1200, 3, 2, 6, 1024, 819, 0, 102, 620, 893},
                                     {1280, 1280, 2, 2, 4, 1024, 1024, 0, 0, 420, 693},
                                     {1920, 1080, 2, 1, 2, 1024, 576, 0, 224, 210, 483},
                                     {1240, 1754, 2, 3, 6, 724, 1024, 150, 0, 630, 903},
                                     {3000, 500, 6, 1, 6, 1024, 171, 0, 426, 610, 883},
                                     {400, 2400, 1, 6, 6, 171, 1024, 426, 0, 660, 933},
                                     {1600, 640, 3, 1, 3, 1024, 410, 0, 307, 310, 583},
                                     {1400, 800, 2, 1, 2, 1024, 585, 0, 220, 210, 483},
                                     {1750, 1000, 3, 2, 6, 1024, 585, 0, 220, 620, 893},
                                     {1920, 1080, 4, 2, 8, 1024, 576, 0, 224, 820, 1093, 9}};

Processor with_max_tiles(std::int64_t max_tiles) {
  Processing p;
  p.max_tiles = max_tiles;
  return Processor(p);
}

const Processor& released() {
  static const Processor processor(Processing{});
  return processor;
}

/// Rows of an image of this size.
std::int64_t out_rows(std::int64_t width_px, std::int64_t height_px) {
  return released().plan_image(width_px, height_px).spec.out_rows;
}

TEST(DeepseekOcrProcessor, TheTargetIsTheLargerOfBothViews) {
  const auto target = [](std::int64_t width, std::int64_t height) {
    const ItemPlan plan = released().plan_image(width, height);
    return std::pair(plan.target_width_px, plan.target_height_px);
  };
  EXPECT_EQ(target(4000, 3000), std::pair(std::int64_t{1920}, std::int64_t{1280}));
  EXPECT_EQ(target(1300, 2600), std::pair(std::int64_t{640}, std::int64_t{1280}));
  EXPECT_EQ(target(480, 320), std::pair(std::int64_t{1024}, std::int64_t{683}));
}

TEST(DeepseekOcrProcessor, PlansTheWorkedExamples) {
  for (const Example& e : kExamples) {
    SCOPED_TRACE(::testing::Message() << e.width << "x" << e.height << ", max " << e.max_tiles);
    const ItemPlan plan = with_max_tiles(e.max_tiles).plan_image(e.width, e.height);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, e.rows, e.cols}));
    EXPECT_FALSE(plan.has_grid_thw);
    EXPECT_EQ(plan.spec.path_tokens[kGlobal], 272);
    EXPECT_EQ(plan.spec.path_tokens[kLocal], 100 * e.tiles);
    EXPECT_EQ(plan.spec.out_rows, e.total);
    EXPECT_EQ(plan.spec.out_rows - 273, e.local);
    EXPECT_EQ(plan.spec.input_rows, 4096 + 1600 * e.tiles);
    EXPECT_EQ(plan.spec.num_seqs, 1);
    EXPECT_EQ(plan.resized_width_px, e.tiles > 0 ? 640 * e.cols : 1024);
    EXPECT_EQ(plan.resized_height_px, e.tiles > 0 ? 640 * e.rows : 1024);
    EXPECT_EQ(plan.pixel_bytes, static_cast<std::size_t>(3 * (1024 * 1024 + e.tiles * 640 * 640)));
    EXPECT_EQ(tiling_of(plan).has_value(), e.tiles > 0);
  }
}

TEST(DeepseekOcrProcessor, CountsFollowTheOrientationOfTheTiles) {
  EXPECT_EQ(out_rows(1200, 1800), 273 + 30 * 21);  // 2 x 3 tiles
  EXPECT_EQ(out_rows(1800, 1200), 273 + 20 * 31);  // 3 x 2
}

TEST(DeepseekOcrProcessor, TilesImagesThatAreLargerThanATileAndNoOthers) {
  const auto tiling = [](std::int64_t width_px, std::int64_t height_px) {
    return tiling_of(released().plan_image(width_px, height_px));
  };
  EXPECT_EQ(tiling(640, 641), (common::Tiling{.cols = 2, .rows = 2}));
  EXPECT_EQ(tiling(641, 1), (common::Tiling{.cols = 6, .rows = 1}));
  EXPECT_EQ(tiling(10000, 10000), (common::Tiling{.cols = 2, .rows = 2}));
  EXPECT_FALSE(tiling(1, 640).has_value());
}

TEST(DeepseekOcrProcessor, AllModesOfTheVendorHaveTheirCounts) {
  // Rows of an untiled image by the side of the global view.
  for (const auto& [side, rows] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {512, 73}, {640, 111}, {1024, 273}, {1280, 421}}) {
    Processing p;
    p.views[kGlobal] = view_of(side);
    EXPECT_EQ(Processor(p).plan_image(300, 200).spec.out_rows, rows);
  }
}

TEST(DeepseekOcrProcessor, RefusesImagesWithoutArea) {
  for (const auto& size :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 5}, {5, 0}, {-1, 5}}) {
    test::expect_error(ErrorCode::kInvalidArgument, "pixels has no area",
                       [&] { (void)released().plan_image(size.first, size.second); });
  }
}

TEST(DeepseekOcrProcessor, RefusesImagesThatWouldVanish) {
  test::expect_error(ErrorCode::kInvalidArgument,
                     "image of 1x5000 pixels is too thin: fitted into 1024x1024 it would be 0x1024",
                     [] { (void)released().plan_image(1, 5000); });
  test::expect_error(ErrorCode::kInvalidArgument, "it would be 1024x0",
                     [] { (void)released().plan_image(2049, 1); });
  // Half a pixel rounds to the even 0, anything more to 1.
  EXPECT_THROW((void)released().plan_image(1, 2048), Error);
  EXPECT_EQ(out_rows(1, 2047), 273 + 660);
}

std::vector<std::uint8_t> views_of(const Processor& processor, RgbView image) {
  const ItemPlan plan = processor.plan_image(image.width_px, image.height_px);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  processor.fill_frame(plan, 0, image, pixels);
  return pixels;
}

TEST(DeepseekOcrProcessor, CentresTheImageOnGrey) {
  for (const Example& e : kExamples) {
    SCOPED_TRACE(::testing::Message() << e.width << "x" << e.height);
    const std::vector<std::uint8_t> white(static_cast<std::size_t>(e.width * e.height * 3), 255);
    const std::vector<std::uint8_t> view =
        views_of(with_max_tiles(e.max_tiles), {white.data(), e.width, e.height});
    std::int64_t wrong = 0;
    for (std::int64_t y = 0; y < 1024; ++y) {
      for (std::int64_t x = 0; x < 1024; ++x) {
        const bool inside =
            x >= e.at_x && x < e.at_x + e.fit_width && y >= e.at_y && y < e.at_y + e.fit_height;
        wrong += view[static_cast<std::size_t>((y * 1024 + x) * 3)] != (inside ? 255 : 127);
      }
    }
    EXPECT_EQ(wrong, 0);
  }
}

TEST(DeepseekOcrProcessor, TilesAreCutRowByRow) {
  // Two columns and three rows of tiles of one colour each; the middle of a tile has its colour.
  constexpr std::int64_t kWidth = 1280;
  constexpr std::int64_t kHeight = 1920;
  std::vector<std::uint8_t> image;
  for (std::int64_t y = 0; y < kHeight; ++y) {
    for (std::int64_t x = 0; x < kWidth; ++x) {
      const std::int64_t tile = y / 640 * 2 + x / 640;
      image.insert(image.end(), 3, static_cast<std::uint8_t>(10 + tile));
    }
  }
  const std::vector<std::uint8_t> pixels = views_of(released(), {image.data(), kWidth, kHeight});
  constexpr std::size_t kGlobalBytes = 3 * 1024 * 1024;
  constexpr std::size_t kTileBytes = 3 * 640 * 640;
  ASSERT_EQ(pixels.size(), kGlobalBytes + 6 * kTileBytes);
  for (std::size_t tile = 0; tile < 6; ++tile) {
    for (const std::size_t at : {std::size_t{0}, kTileBytes / 2, kTileBytes - 1}) {
      EXPECT_EQ(pixels[kGlobalBytes + tile * kTileBytes + at], 10 + tile);
    }
  }
}

TEST(DeepseekOcrProcessor, RefusesWhatWasNotPlanned) {
  const ItemPlan plan = released().plan_image(64, 48);
  const std::vector<std::uint8_t> image(64 * 48 * 3);
  std::vector<std::uint8_t> out(plan.pixel_bytes);
  const auto expect_refused = [&](ErrorCode code, const std::string& message, std::int64_t index,
                                  const RgbView& frame, std::size_t bytes) {
    test::expect_error(code, message, [&] {
      released().fill_frame(plan, index, frame, std::span(out).first(bytes));
    });
  };
  expect_refused(ErrorCode::kInvalidArgument, "frame 0 is 48x64 pixels, planned was 64x48", 0,
                 {image.data(), 48, 64}, out.size());
  expect_refused(ErrorCode::kInvalidArgument, "item was planned for 1 frame, got frame 1", 1,
                 {image.data(), 64, 48}, out.size());
  expect_refused(ErrorCode::kInternal, "pixels need 3145728 bytes, got 3145727", 0,
                 {image.data(), 64, 48}, out.size() - 1);
}

/// Sums over rows and columns of square views, and their bytes, against those of the reference.
class GoldenViews {
 public:
  GoldenViews(const checkpoint::SafetensorsFile& file, std::string prefix)
      : file_(file), prefix_(std::move(prefix)) {}

  /// Compares `count` views of `side` pixels; `name` of their tensors.
  void expect(const std::string& name, std::span<const std::uint8_t> views, std::int64_t count,
              std::int64_t side) const {
    const ConstTensorView row_sums = file_.tensor(prefix_ + name + "_u8_rowsum");
    const ConstTensorView col_sums = file_.tensor(prefix_ + name + "_u8_colsum");
    ASSERT_EQ(row_sums.shape, (Shape{count, 3, side}));
    std::vector<std::int32_t> by_row(static_cast<std::size_t>(count * 3 * side));
    std::vector<std::int32_t> by_col(by_row.size());
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(views.size()); ++i) {
      const std::int64_t plane = i / (3 * side * side) * 3 + i % 3;  // view, channel
      const std::int32_t value = views[static_cast<std::size_t>(i)];
      by_row[static_cast<std::size_t>(plane * side + i / (3 * side) % side)] += value;
      by_col[static_cast<std::size_t>(plane * side + i / 3 % side)] += value;
    }
    EXPECT_EQ(by_row, values<std::int32_t>(row_sums)) << name;
    EXPECT_EQ(by_col, values<std::int32_t>(col_sums)) << name;
  }

  /// Compares every byte of the first view where the reference kept them, [1, 3, side, side].
  void expect_bytes(const std::string& name, std::span<const std::uint8_t> view,
                    std::int64_t side) const {
    if (file_.find(prefix_ + name) == nullptr) return;
    std::vector<std::uint8_t> planar;
    for (std::size_t channel = 0; channel < 3; ++channel) {
      for (std::size_t pixel = 0; pixel < static_cast<std::size_t>(side * side); ++pixel) {
        planar.push_back(view[3 * pixel + channel]);
      }
    }
    EXPECT_TRUE(planar == values<std::uint8_t>(file_.tensor(prefix_ + name))) << name;
  }

  /// All that is known of an image.
  void expect_views(RgbView image) const {
    const ItemPlan plan = released().plan_image(image.width_px, image.height_px);
    const std::optional<common::Tiling> tiling = tiling_of(plan);
    const common::Tiling crop = tiling.value_or(common::Tiling{});
    EXPECT_EQ(values<std::int64_t>(file_.tensor(prefix_ + "images_spatial_crop")),
              (std::vector<std::int64_t>{crop.cols, crop.rows}));
    EXPECT_EQ(values<std::int64_t>(file_.tensor(prefix_ + "num_image_tokens")),
              std::vector<std::int64_t>{plan.spec.out_rows});
    const std::vector<std::uint8_t> pixels = views_of(released(), image);
    const std::span<const std::uint8_t> global = std::span(pixels).first(3 * 1024 * 1024);
    expect("pixel_values", global, 1, 1024);
    expect_bytes("pixel_values_u8", global, 1024);
    if (!tiling) return;
    const std::span<const std::uint8_t> tiles = std::span(pixels).subspan(global.size());
    expect("images_crop", tiles, tiling->count(), 640);
    expect_bytes("images_crop_u8.tile0", tiles.first(3 * 640 * 640), 640);
  }

 private:
  template <class T>
  static std::vector<T> values(const ConstTensorView& view) {
    std::vector<T> result(static_cast<std::size_t>(view.shape.elements()));
    std::memcpy(result.data(), view.data, view.bytes());
    return result;
  }

  const checkpoint::SafetensorsFile& file_;
  std::string prefix_;
};

TEST(DeepseekOcrProcessorGolden, ViewsOfEverySizeAreThoseOfTheReference) {
  for (const std::string& folder : test::golden_folders("deepseek_ocr", "preprocess.safetensors")) {
    const checkpoint::SafetensorsFile file(folder + "/preprocess.safetensors");
    const std::vector<std::string> names = test::image_names(file, ".rgb");
    EXPECT_FALSE(names.empty());
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      const ConstTensorView rgb = file.tensor(name + ".rgb");
      GoldenViews(file, name + ".")
          .expect_views({rgb.as<std::uint8_t>(), rgb.shape[1], rgb.shape[0]});
    }
  }
}

TEST(DeepseekOcrProcessorGolden, ViewsOfTheImagesAreThoseOfTheReference) {
  for (const std::string& folder : test::golden_folders("deepseek_ocr", "golden.safetensors")) {
    const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
    for (const std::string& name : test::image_names(file, ".in.num_image_tokens")) {
      SCOPED_TRACE(name);
      for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
        if (entry.path().stem() != name) continue;
        const media::Image image =
            media::decode_image(read_file(entry.path().string(), 1 << 20), name, MediaOptions{});
        GoldenViews(file, name + ".in.")
            .expect_views({image.rgb.data(), image.width_px, image.height_px});
      }
    }
  }
}

}  // namespace
}  // namespace fovea::deepseek_ocr
