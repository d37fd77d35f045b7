// What headers tell before anything is decoded.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

std::vector<std::uint8_t> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string kTurned =  // EXIF says that its rows are columns
    FOVEA_TEST_SOURCE_DIR "/tests/fuzz/corpus/decode_jpeg/progressive_444_exif";

TEST(ProbeImage, ReadsTheSizeOfAnUprightImage) {
  const std::vector<std::uint8_t> bytes = read(kTurned);
  const ItemSize stored = probe_image(bytes, "turned", {.profile = MediaProfile::kVllm023});
  const ItemSize upright = probe_image(bytes, "turned");
  ASSERT_NE(stored.width_px, stored.height_px);
  EXPECT_EQ(upright.width_px, stored.height_px);
  EXPECT_EQ(upright.height_px, stored.width_px);
  EXPECT_EQ(upright.num_frames, 1);
}

TEST(ProbeImage, NeedsTheHeaderOnly) {
  const std::vector<std::uint8_t> bytes = read(FOVEA_TEST_SOURCE_DIR "/tests/media/images/rgb.png");
  const ItemSize whole = probe_image(bytes, "rgb.png");
  const ItemSize start = probe_image(std::span(bytes).first(64), "rgb.png");
  EXPECT_EQ(start.width_px, whole.width_px);
  EXPECT_EQ(start.height_px, whole.height_px);
}

TEST(ProbeImage, RefusesWhatIsNoImageAndWhatIsTooLarge) {
  const std::vector<std::uint8_t> text{'t', 'e', 'x', 't'};
  test::expect_error(ErrorCode::kUnsupported,
                     "upload: ", [&] { (void)probe_image(text, "upload"); });
  MediaOptions options;
  options.limits.max_image_pixels = 4;
  test::expect_error(ErrorCode::kInvalidArgument,
                     "turned: ", [&] { (void)probe_image(read(kTurned), "turned", options); });
}

TEST(PlanAhead, SaysWhatItemsBecome) {
  const std::string model = test::golden_folder("qwen3_vl", "golden.safetensors");
  Engine engine = Engine::load(model, {.device = "cpu", .num_threads = 2});
  std::vector<MediaItem> items{image_file(images_in(model + "/images").front()),
                               image_rgb(std::vector<std::uint8_t>(64 * 96 * 3), 64, 96, "rgb")};
  const std::vector<Embedding> rows = engine.encode(items);
  items.push_back(precomputed(rows[0]));
  items.push_back(image_bytes({1, 2, 3}, "broken"));
  const std::vector<std::optional<ItemInfo>> known = engine.plan_ahead(items);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(known[i]) << i;
    EXPECT_EQ(known[i]->name, items[i].name);
    EXPECT_EQ(known[i]->rows, rows[i % 2].rows);
    EXPECT_EQ(known[i]->grid_thw, rows[i % 2].grid_thw);
  }
  EXPECT_EQ(known[1]->patches, 24);
  EXPECT_EQ(known[2]->patches, 0);
  EXPECT_FALSE(known[3]);
}

}  // namespace
}  // namespace fovea
