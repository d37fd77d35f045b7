// How a call is prepared window by window: what has no room comes with the next one.
#include "engine/prepared_windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "media/test_images.h"
#include "models/load_model.h"
#include "support/golden.h"

namespace fovea {
namespace {

/// Images of 64 x 64 pixels: 12,288 bytes each when they are prepared.
class WindowsOfACall : public ::testing::Test {
 protected:
  using Indices = std::vector<std::size_t>;

  /// The items of each window that a window of all of `media_` is cut into.
  [[nodiscard]] std::vector<Indices> windows(std::size_t window_bytes) {
    std::vector<Item> items;
    for (const MediaItem& media : media_) items.push_back({&media, {}});
    PreparedWindows::Window all;
    for (Item& item : items) all.items.push_back(&item);
    const PrepareContext context{.model = *model_,
                                 .options = options_,
                                 .budget = budget_,
                                 .most_bytes = are_cut_ ? window_bytes : 0};
    PreparedWindows prepared({context, pool_, true, window_bytes}, {all});
    std::vector<Indices> result;
    while (!prepared.done()) {
      result.emplace_back();
      const PreparedWindows::Window window = prepared.next();
      for (const Item* item : window.items) {
        EXPECT_EQ(window.is_last, item->prepared.is_last);
        if (window.is_stream) streams_.push_back(item->prepared.units);
        result.back().push_back(static_cast<std::size_t>(item - items.data()));
        EXPECT_FALSE(item->prepared.postponed);
        EXPECT_EQ(item->prepared.item.pixels.empty(), item->prepared.error.has_value());
      }
    }
    return result;
  }

  static MediaItem image() {
    return image_rgb(std::vector<std::uint8_t>(64 * 64 * 3), 64, 64, "image");
  }
  /// Of 32 units, each of which has the bytes of two images at least.
  static MediaItem video() {
    return video_rgb(std::vector<std::uint8_t>(64 * 64 * 64 * 3), 64, 64, 64, 2.0, "video");
  }
  [[nodiscard]] std::size_t unit_bytes() const {
    return model_->processor().plan_video(64, 64, 64).unit_bytes[0];
  }

  const std::unique_ptr<EncoderGraphModel> model_ = plan_model(
      checkpoint::read_hf_config(test::golden_folder("qwen3_vl", "golden.safetensors")), {});
  MediaOptions options_;
  DecodeBudget budget_{1 << 20};
  ThreadPool pool_{3};
  std::vector<MediaItem> media_ = std::vector<MediaItem>(5, image());
  bool are_cut_ = false;            // items into units
  std::vector<UnitRange> streams_;  // of every window of a long video
};

TEST_F(WindowsOfACall, WhatDoesNotFitIsPreparedInTheNextWindow) {
  EXPECT_EQ(windows(5 * 12'288), (std::vector<Indices>{{0, 1, 2, 3, 4}}));
  EXPECT_EQ(windows(5 * 12'288 - 1), (std::vector<Indices>{{0, 1, 2, 3}, {4}}));
  EXPECT_EQ(windows(2 * 12'288), (std::vector<Indices>{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(windows(1).size(), 5);
}

TEST_F(WindowsOfACall, WhatFailsTakesNoRoom) {
  media_[1] = image_file("missing.png");
  EXPECT_EQ(windows(2 * 12'288), (std::vector<Indices>{{0, 1, 2}, {3, 4}}));
}

TEST_F(WindowsOfACall, ALongVideoHasWindowsOfItsOwnAndOthersGoOn) {
  media_[1] = video();
  are_cut_ = true;
  for (const std::size_t units : {8, 24}) {  // of a window
    SCOPED_TRACE(units);
    streams_.clear();
    std::vector<Indices> got = windows(units * unit_bytes() + 7);
    EXPECT_EQ(got.front(), (Indices{0, 2, 3, 4}));
    got.erase(got.begin());
    EXPECT_EQ(got, std::vector<Indices>(streams_.size(), {1}));
    EXPECT_LE(4 * streams_.front().count, units) << "there is room for more than one take";
    std::int64_t next = 0;
    for (const UnitRange& range : streams_) {
      EXPECT_EQ(range.first, next);
      EXPECT_EQ(range.count, std::min(streams_.front().count, 32 - next));
      next += range.count;
    }
    EXPECT_EQ(next, 32);
  }
}

TEST_F(WindowsOfACall, WithoutUnitsALongVideoIsPreparedAsAWhole) {
  media_[1] = video();
  EXPECT_EQ(windows(8 * unit_bytes()), (std::vector<Indices>{{0}, {1}, {2, 3, 4}}));
  EXPECT_TRUE(streams_.empty());
}

TEST_F(WindowsOfACall, ALongVideoMayBeAllThereIs) {
  media_ = {video()};
  are_cut_ = true;
  const std::vector<Indices> got = windows(32 * unit_bytes() - 1);
  EXPECT_TRUE(got.front().empty());
  EXPECT_EQ(got.size(), 1 + streams_.size());
  EXPECT_GT(streams_.size(), 1U);
}

TEST_F(WindowsOfACall, ALongVideoComesBeforeWhatHasNoRoom) {
  const std::size_t images = 8 * unit_bytes() / 12'288;  // in a window
  media_ = std::vector<MediaItem>(images + 5, image());
  media_[1] = video();
  media_[3] = video();
  are_cut_ = true;
  const std::vector<Indices> got = windows(8 * unit_bytes());
  ASSERT_EQ(got.size(), 1 + streams_.size() + 1);
  EXPECT_EQ(got[0].back(), images + 1);
  EXPECT_EQ(got.back().front(), images + 2);
  for (std::size_t i = 1; i <= streams_.size(); ++i) EXPECT_EQ(got[i].size(), 1U) << i;
}

TEST_F(WindowsOfACall, AnErrorEndsTheWindowsOfALongVideo) {
  std::vector<MediaBytes> frames(
      64, test::encode_png({.width = 64, .height = 64}, std::vector<std::uint16_t>(64 * 64 * 3)));
  frames[20] = test::png_that_claims(64, 64);
  media_[1] = video_frames(frames, "video");
  are_cut_ = true;
  const std::vector<Indices> got = windows(8 * unit_bytes());
  EXPECT_LT(got.size(), 1 + 32U);
  EXPECT_EQ(got.front(), (Indices{0, 2, 3, 4}));
  EXPECT_EQ(streams_.back(), UnitRange{}) << "the error";
}

}  // namespace
}  // namespace fovea
