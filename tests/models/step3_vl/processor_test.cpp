// Sizes and pixels of Step3-VL.
#include "models/step3_vl/processor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "checkpoint/safetensors.h"
#include "core/check.h"
#include "core/file.h"
#include "media/decode_image.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/image_names.h"

namespace fovea::step3_vl {
namespace {

const Processor& processor() {
  static const Processor with_windows(true);
  return with_windows;
}

std::vector<std::uint8_t> pixels_of(RgbView image) {
  const ItemPlan plan = processor().plan_image(image.width_px, image.height_px);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  processor().fill_frame(plan, 0, image, pixels);
  return pixels;
}

TEST(Step3VlProcessor, PlansTheTokensOfTheWorkedExamples) {
  struct Example {
    std::int64_t width, height, windows, rows;
  };
  for (const Example& e : {Example{448, 448, 0, 169},
                           {700, 400, 2, 331},
                           {728, 728, 4, 493},
                           {1280, 720, 6, 655},
                           {1920, 1080, 8, 817},
                           {3024, 3024, 36, 3085},
                           {4032, 3024, 30, 2599},
                           {2500, 100, 25, 2194},
                           {20, 100, 0, 169}}) {
    SCOPED_TRACE(::testing::Message() << e.width << "x" << e.height);
    const ItemPlan plan = processor().plan_image(e.width, e.height);
    EXPECT_EQ(plan.spec.out_rows, e.rows);
    EXPECT_EQ(plan.spec.path_tokens[kGlobal], 169);
    EXPECT_EQ(plan.spec.path_tokens[kLocal], 81 * e.windows);
    EXPECT_EQ(plan.spec.input_rows, 2704 + 1296 * e.windows);
    EXPECT_EQ(plan.grid[1] * plan.grid[2], e.windows);
    EXPECT_FALSE(plan.has_grid_thw);
    EXPECT_EQ(plan.pixel_bytes, static_cast<std::size_t>(9 * (728 * 728 + e.windows * 504 * 504)));
  }
  EXPECT_EQ(processor().plan_image(1280, 720).grid, (std::array<std::int64_t, 3>{1, 2, 3}));
  EXPECT_EQ(Processor(false).plan_image(1280, 720).spec.out_rows, 169);
}

TEST(Step3VlProcessor, TheTargetIsTheSizeThatViewsAreMadeOf) {
  const auto target = [](std::int64_t width, std::int64_t height) {
    const ItemPlan plan = processor().plan_image(width, height);
    return std::pair(plan.target_width_px, plan.target_height_px);
  };
  EXPECT_EQ(target(1280, 720), std::pair(std::int64_t{1280}, std::int64_t{720}));
  EXPECT_EQ(target(16000, 12000), std::pair(std::int64_t{3024}, std::int64_t{2268}));
  EXPECT_EQ(target(20, 100), std::pair(std::int64_t{0}, std::int64_t{0})) << "it is padded first";
}

TEST(Step3VlProcessor, WindowsBeyondTheImageAreBlack) {
  const std::vector<std::uint8_t> white(900 * 500 * 3, 255);
  const std::vector<std::uint8_t> pixels = pixels_of({white.data(), 900, 500});
  const std::size_t whole = kViews[kGlobal].pixel_bytes();
  constexpr std::size_t kLine = 504 * 3;
  for (std::size_t window = 0; window < 2; ++window) {
    const std::uint8_t* const first = pixels.data() + whole + window * 3 * 504 * kLine;
    EXPECT_EQ(first[500 * kLine - 1], 255) << "the last line of the image";
    EXPECT_EQ(first[500 * kLine], 0);
    EXPECT_EQ(first[504 * kLine - 1], 0);
  }
}

TEST(Step3VlProcessor, SquaresHaveTheImageInTheirCorner) {
  const std::vector<std::uint8_t> white(20 * 100 * 3, 255);
  const std::vector<std::uint8_t> pixels = pixels_of({white.data(), 20, 100});
  const std::size_t line = 728 * 3;
  EXPECT_EQ(pixels[0], 255);
  EXPECT_EQ(pixels[727 * line], 255) << "bottom left";
  EXPECT_EQ(pixels[line - 1], 0) << "top right";
}

TEST(Step3VlProcessor, RefusesWhatWasNotPlanned) {
  const ItemPlan plan = processor().plan_image(64, 48);
  const std::vector<std::uint8_t> image(64 * 48 * 3);
  std::vector<std::uint8_t> out(plan.pixel_bytes);
  const auto expect_refused = [&](ErrorCode code, const std::string& message, std::int64_t index,
                                  const RgbView& frame, std::size_t bytes) {
    test::expect_error(code, message, [&] {
      processor().fill_frame(plan, index, frame, std::span(out).first(bytes));
    });
  };
  expect_refused(ErrorCode::kInvalidArgument, "frame 0 is 48x64 pixels, planned was 64x48", 0,
                 {image.data(), 48, 64}, out.size());
  expect_refused(ErrorCode::kInvalidArgument, "item was planned for 1 frame, got frame 1", 1,
                 {image.data(), 64, 48}, out.size());
  expect_refused(ErrorCode::kInternal, "pixels need 4769856 bytes, got 4769855", 0,
                 {image.data(), 64, 48}, out.size() - 1);
}

/// What the reference's processor says of images: every 13th (9th) pixel of every 13th (9th) row of
/// the whole image (of its windows), the number of windows, and which of them end a row.
class GoldenPixels {
 public:
  GoldenPixels(const checkpoint::SafetensorsFile& file, std::string prefix)
      : file_(file), prefix_(std::move(prefix)) {}

  void expect(RgbView image) const {
    const ItemPlan plan = processor().plan_image(image.width_px, image.height_px);
    const std::int64_t windows = plan.grid[1] * plan.grid[2];
    EXPECT_EQ(ints("num_patches"), std::vector<std::int64_t>{windows});
    std::vector<std::int64_t> row_ends;
    for (std::int64_t i = 1; i <= windows; ++i) {
      row_ends.push_back(i % plan.grid[2] == 0 && i < windows ? 1 : 0);
    }
    EXPECT_EQ(ints("patch_newline_mask"), row_ends);
    const std::vector<std::uint8_t> pixels = pixels_of(image);
    expect_view("pixel_values.sub_5_13", pixels.data(), 1, kViews[kGlobal], 5, 13);
    if (windows == 0) return;
    expect_view("patch_pixel_values.sub_4_9", pixels.data() + kViews[kGlobal].pixel_bytes(),
                windows, kViews[kLocal], 4, 9);
  }

 private:
  /// Compares pixels first, first + step ... of both axes of `count` views, normalised.
  void expect_view(const std::string& name, const std::uint8_t* views, std::int64_t count,
                   const common::SquareView& view, std::int64_t first, std::int64_t step) const {
    const checkpoint::TensorEntry* const entry = file_.find(prefix_ + name);
    if (entry == nullptr) return;  // not kept in the repository
    const ConstTensorView want = file_.tensor(prefix_ + name);
    const std::int64_t side = want.shape[3];
    ASSERT_EQ(want.shape, (Shape{count, 3, side, side}));
    std::vector<float> values(static_cast<std::size_t>(want.shape.elements()));
    std::memcpy(values.data(), want.data, want.bytes());
    double worst = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t y = first + at / side % side * step;
      const std::int64_t x = first + at % side * step;
      const std::int64_t channel = at / (side * side) % 3;
      const std::uint8_t* const byte =
          views + at / (3 * side * side) * static_cast<std::int64_t>(view.pixel_bytes()) +
          (y * view.side_px + x) * 3 + channel;
      const std::int64_t plane = view.plane_bytes();
      const double level = byte[0] + byte[plane] / 256.0 + byte[2 * plane] / 65536.0;
      const auto c = static_cast<std::size_t>(channel);
      const double got = (level / 255 - double{Config::kMean[c]}) / double{Config::kStd[c]};
      worst = std::max(worst, std::abs(got - double{values[i]}));
    }
    EXPECT_LE(worst, 2e-6) << name;
  }

  [[nodiscard]] std::vector<std::int64_t> ints(const std::string& name) const {
    const ConstTensorView view = file_.tensor(prefix_ + name);
    std::vector<std::int64_t> result(static_cast<std::size_t>(view.shape.elements()));
    if (!result.empty()) std::memcpy(result.data(), view.data, view.bytes());
    return result;
  }

  const checkpoint::SafetensorsFile& file_;
  std::string prefix_;
};

TEST(Step3VlProcessorGolden, PixelsOfEverySizeAreThoseOfTheReference) {
  for (const std::string& folder : test::golden_folders("step3_vl", "preprocess.safetensors")) {
    const checkpoint::SafetensorsFile file(folder + "/preprocess.safetensors");
    for (const std::string& name : test::image_names(file, ".rgb")) {
      SCOPED_TRACE(name);
      const ConstTensorView rgb = file.tensor(name + ".rgb");
      GoldenPixels(file, name + ".").expect({rgb.as<std::uint8_t>(), rgb.shape[1], rgb.shape[0]});
    }
  }
}

TEST(Step3VlProcessorGolden, PixelsOfTheImagesAreThoseOfTheReference) {
  for (const std::string& folder : test::golden_folders("step3_vl", "golden.safetensors")) {
    const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
    const std::vector<std::string> names = test::image_names(file, ".in.num_patches");
    EXPECT_FALSE(names.empty());
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      const media::Image image = media::decode_image(
          read_file(cat(folder, "/images/", name, ".png"), 1 << 20), name, MediaOptions{});
      GoldenPixels(file, name + ".in.").expect({image.rgb.data(), image.width_px, image.height_px});
    }
  }
}

}  // namespace
}  // namespace fovea::step3_vl
