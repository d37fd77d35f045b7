// JPEG files that are decoded at a fraction of their size: the same sizes and numbers of rows, and
// nearly the same pixels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/file.h"
#include "engine/prepare.h"
#include "media/decode_image.h"
#include "media/reduction.h"
#include "media/test_images.h"
#include "models/load_model.h"
#include "support/golden.h"

namespace fovea {
namespace {

/// A smooth picture with an edge, which differs at all four sides.
std::vector<std::uint8_t> encoded_picture(std::int64_t width, std::int64_t height) {
  const auto columns = static_cast<int>(width);
  const auto rows = static_cast<int>(height);
  const auto samples = test::make_samples<std::uint8_t>(columns, rows, 3, [&](int x, int y, int c) {
    const float u = static_cast<float>(x) / static_cast<float>(columns);
    const float v = static_cast<float>(y) / static_cast<float>(rows);
    const float edge = u + v > 0.8F ? 30 : 0;
    return static_cast<int>(40 + 150 * u * (1.2F - u) + 80 * v * v + 20 * u * v + edge) + 5 * c;
  });
  return test::encode_jpeg({.width = columns, .height = rows, .subsampling = 2}, samples);
}

/// A family with reference data, on the host alone.
class Host {
 public:
  explicit Host(const std::string& folder, const MediaOptions& options)
      : options_(options), model_(plan_model(checkpoint::read_hf_config(folder), options)) {}

  [[nodiscard]] const ItemProcessor& processor() const { return model_->processor(); }

  [[nodiscard]] PreparedMedia prepare(const MediaItem& media, bool scaled) const {
    MediaOptions options = options_;
    options.jpeg_scaling = scaled;
    DecodeBudget budget(decode_budget_bytes(options.limits, 1));
    return prepare_media({*model_, options, budget}, media);
  }

 private:
  MediaOptions options_;
  std::unique_ptr<EncoderGraphModel> model_;
};

struct Difference {
  int largest = 0;
  double mean = 0;
};

Difference difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  Difference d;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const int step = std::abs(a[i] - b[i]);
    d.largest = std::max(d.largest, step);
    d.mean += static_cast<double>(step) / static_cast<double>(a.size());
  }
  return d;
}

/// The reduction that an item of this size has.
int reduction_of(const Host& host, std::int64_t width, std::int64_t height) {
  const ItemPlan plan = host.processor().plan_image(width, height);
  return media::choose_reduction(width, height, plan.target_width_px, plan.target_height_px);
}

void expect_nearly_the_same(const Host& host, std::int64_t width, std::int64_t height,
                            const std::vector<std::uint8_t>& file) {
  SCOPED_TRACE(::testing::Message() << width << "x" << height);
  const MediaItem item = image_bytes(file, "picture");
  const PreparedMedia full = host.prepare(item, false);
  const PreparedMedia scaled = host.prepare(item, true);
  ASSERT_FALSE(full.error);
  ASSERT_FALSE(scaled.error) << scaled.error->what();
  EXPECT_EQ(scaled.item.plan.grid, full.item.plan.grid);
  EXPECT_EQ(scaled.item.plan.spec.out_rows, full.item.plan.spec.out_rows);
  EXPECT_EQ(scaled.item.plan.source_width_px, width);
  ASSERT_EQ(scaled.item.pixels.size(), full.item.pixels.size());
  const Difference d = difference(scaled.item.pixels, full.item.pixels);
  if (reduction_of(host, width, height) == 1) {
    EXPECT_EQ(d.largest, 0);
  } else {
    EXPECT_GT(d.mean, 0);
    // Rounding to bytes after each of two steps instead of one, and ringing beside the edge.
    EXPECT_LT(d.mean, 0.6);
    EXPECT_LT(d.largest, 16);
  }
}

TEST(JpegScaling, KeepsGridsAndRowsAtTheBordersOfEachFactor) {
  const std::string folder = test::golden_folder("qwen3_vl", "golden.safetensors");
  const Host host(folder, {.min_pixels = 64 * 64, .max_pixels = 64 * 64});
  for (const int reduction : {2, 4, 8}) {
    const std::int64_t side = std::int64_t{reduction} * 64 * 7 / 4;
    EXPECT_EQ(reduction_of(host, side, side), reduction);
    EXPECT_EQ(reduction_of(host, side - 1, side - 1), reduction / 2);
    for (const std::int64_t width : {side - 1, side, side + 1}) {
      for (const std::int64_t height : {side - 1, side, side + 1}) {
        expect_nearly_the_same(host, width, height, encoded_picture(width, height));
      }
    }
  }
}

TEST(JpegScaling, KeepsPlansAndPlacesOfEveryFamily) {
  constexpr std::int64_t kWidth = 2401;
  constexpr std::int64_t kHeight = 4803;
  const std::vector<std::uint8_t> file = encoded_picture(kWidth, kHeight);
  for (const std::string& folder : test::golden_models()) {
    SCOPED_TRACE(folder);
    const Host host(folder, {.min_pixels = 1 << 16, .max_pixels = 1 << 18});
    const bool in_full =
        folder.ends_with("step3_vl");  // views are made of up to 3024 pixels a side
    EXPECT_EQ(reduction_of(host, kWidth, kHeight) == 1, in_full);
    expect_nearly_the_same(host, kWidth, kHeight, file);
  }
}

TEST(JpegScaling, IsOfFramesToo) {
  const Host host(test::golden_folder("internvl", "config.json"), {});
  const std::int64_t side = host.processor().plan_video(2, 64, 64).target_width_px * 7 / 2 + 1;
  std::vector<MediaBytes> frames(2, encoded_picture(side, side));
  const PreparedMedia full = host.prepare(video_frames(frames, "clip"), false);
  const PreparedMedia scaled = host.prepare(video_frames(frames, "clip"), true);
  ASSERT_FALSE(full.error);
  ASSERT_FALSE(scaled.error) << scaled.error->what();
  EXPECT_EQ(scaled.item.plan.grid, full.item.plan.grid);
  const double mean = difference(scaled.item.pixels, full.item.pixels).mean;
  EXPECT_GT(mean, 0);
  EXPECT_LT(mean, 0.6);
  frames[1] = encoded_picture(side - 1, side);
  EXPECT_TRUE(host.prepare(video_frames(frames, "clip"), true).error)
      << "another size, though both may have as many columns at a fraction of it";
}

TEST(JpegScaling, FailsAsDecodingInFullDoes) {
  const Host host(test::golden_folder("qwen3_vl", "golden.safetensors"),
                  {.min_pixels = 64 * 64, .max_pixels = 64 * 64});
  std::vector<std::uint8_t> file = encoded_picture(600, 600);
  file.resize(file.size() - 100);
  const MediaItem item = image_bytes(file, "cut.jpg");
  const PreparedMedia full = host.prepare(item, false);
  const PreparedMedia scaled = host.prepare(item, true);
  ASSERT_TRUE(full.error && scaled.error);
  EXPECT_EQ(scaled.error->code(), full.error->code());
  EXPECT_STREQ(scaled.error->what(), full.error->what());
}

}  // namespace
}  // namespace fovea
