// How a call is prepared window by window: what has no room comes with the next one.
#include "engine/prepared_windows.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "models/load_model.h"
#include "support/golden.h"

namespace fovea {
namespace {

/// Images of 64 x 64 pixels: 12,288 bytes each when they are prepared.
class WindowsOfACall : public ::testing::Test {
 protected:
  /// The items of each window that a window of all of `media_` is cut into.
  [[nodiscard]] std::vector<std::vector<std::size_t>> windows(std::size_t window_bytes) {
    std::vector<Item> items;
    for (const MediaItem& media : media_) items.push_back({&media, {}});
    PreparedWindows::Window all;
    for (Item& item : items) all.items.push_back(&item);
    const PrepareContext context{*model_, options_, budget_};
    PreparedWindows prepared({context, pool_, true, window_bytes}, {all});
    std::vector<std::vector<std::size_t>> result;
    while (!prepared.done()) {
      result.emplace_back();
      for (const Item* item : prepared.next().items) {
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

  const std::unique_ptr<EncoderGraphModel> model_ = plan_model(
      checkpoint::read_hf_config(test::golden_folder("qwen3_vl", "golden.safetensors")), {});
  MediaOptions options_;
  DecodeBudget budget_{1 << 20};
  ThreadPool pool_{3};
  std::vector<MediaItem> media_ = std::vector<MediaItem>(5, image());
};

TEST_F(WindowsOfACall, WhatDoesNotFitIsPreparedInTheNextWindow) {
  EXPECT_EQ(windows(5 * 12'288), (std::vector<std::vector<std::size_t>>{{0, 1, 2, 3, 4}}));
  EXPECT_EQ(windows(5 * 12'288 - 1), (std::vector<std::vector<std::size_t>>{{0, 1, 2, 3}, {4}}));
  EXPECT_EQ(windows(2 * 12'288), (std::vector<std::vector<std::size_t>>{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(windows(1).size(), 5);
}

TEST_F(WindowsOfACall, WhatFailsTakesNoRoom) {
  media_[1] = image_file("missing.png");
  EXPECT_EQ(windows(2 * 12'288), (std::vector<std::vector<std::size_t>>{{0, 1, 2}, {3, 4}}));
}

}  // namespace
}  // namespace fovea
