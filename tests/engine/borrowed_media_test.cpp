// Items whose bytes stay where they are.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "fovea/fovea.h"
#include "support/golden.h"

namespace fovea {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class BorrowedMedia : public ::testing::Test {
 protected:
  const std::string model_ = test::golden_folder("qwen3_vl", "golden.safetensors");
  Engine engine_ = Engine::load(model_, {.device = "cpu", .num_threads = 2});
};

TEST_F(BorrowedMedia, GivesTheRowsOfMediaOfItsOwn) {
  const Bytes file = read(images_in(model_ + "/images").front());
  Bytes rgb(4 * 64 * 96 * 3);
  for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<std::uint8_t>(i * i >> 5);
  const Bytes frame(rgb.begin(), rgb.begin() + 64 * 96 * 3);
  const std::vector<MediaItem> owned{image_bytes(file, "a"), image_rgb(frame, 64, 96, "b"),
                                     video_rgb(rgb, 4, 64, 96, 2.0, "c")};
  const std::vector<MediaItem> borrowed{image_bytes({file, nullptr}, "a"),
                                        image_rgb({frame, nullptr}, 64, 96, "b"),
                                        video_rgb({rgb, nullptr}, 4, 64, 96, 2.0, "c")};
  const std::vector<Embedding> expected = engine_.encode(owned);
  const std::vector<Embedding> rows = engine_.encode(borrowed);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].data, expected[i].data) << rows[i].name;
    EXPECT_EQ(rows[i].timestamps, expected[i].timestamps);
  }
}

TEST(BorrowedMediaItem, RefersToTheBytesAndHoldsTheirOwner) {
  const auto owner = std::make_shared<const Bytes>(Bytes{1, 2, 3});
  const MediaItem items[] = {
      image_bytes({*owner, owner}, "a"), image_rgb({*owner, owner}, 1, 1, "b"),
      video_bytes({*owner, owner}, "c", 4.0), video_rgb({*owner, owner}, 1, 1, 1, 4.0, "d")};
  EXPECT_EQ(owner.use_count(), 5);
  for (const MediaItem& item : items) {
    EXPECT_EQ(item.content().data(), owner->data()) << item.name;
    EXPECT_EQ(item.content().size(), 3u) << item.name;
  }
  EXPECT_EQ(items[2].modality, Modality::kVideo);
  EXPECT_EQ(items[3].fps, 4.0);
  EXPECT_EQ(image_bytes({7}, "own").content().front(), 7);
}

}  // namespace
}  // namespace fovea
