// What headers tell before anything is decoded, and what becomes of it when they change.
#include "fovea/planned_item.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "fovea/fovea.h"
#include "support/counted_file.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

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

class PlannedItems : public ::testing::Test {
 protected:
  /// A copy of an image of the model, under a name that every copy has.
  std::string replace(const std::string& image) {
    std::filesystem::copy_file(model_ + "/images/" + image, file_,
                               std::filesystem::copy_options::overwrite_existing);
    return file_;
  }
  [[nodiscard]] std::vector<MediaItem> two_images() {
    return {image_file(replace("photo_180x180.jpg")),
            image_rgb(std::vector<std::uint8_t>(64 * 96 * 3), 64, 96, "rgb")};
  }
  [[nodiscard]] PlannedItem plan(MediaItem item) const {
    std::vector<MediaItem> items;
    items.push_back(std::move(item));
    return engine_.plan_items(std::move(items)).front();
  }
  [[nodiscard]] Embedding encode(const PlannedItem& item) {
    return engine_.encode(std::span(&item, 1), {.on_error = OnError::kSkip}).front();
  }

  const std::string model_ = test::golden_folder("qwen3_vl", "golden.safetensors");
  const test::TemporaryDirectory folder_;
  const std::string file_ = folder_ / "image";
  Engine engine_ = Engine::load(model_, {.device = "cpu", .num_threads = 2});
};

TEST_F(PlannedItems, SayWhatItemsBecome) {
  std::vector<MediaItem> items = two_images();
  const std::vector<Embedding> rows = engine_.encode(items);
  items.push_back(precomputed(rows[0]));
  items.push_back(image_bytes({1, 2, 3}, "broken"));
  const std::vector<PlannedItem> planned = engine_.plan_items(items);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::optional<ItemInfo> info = planned[i].info();
    ASSERT_TRUE(info) << i;
    EXPECT_EQ(info->name, items[i].name);
    EXPECT_EQ(info->rows, rows[i % 2].rows);
    EXPECT_EQ(planned[i].rows(), info->rows);
    EXPECT_EQ(planned[i].patches(), info->patches);
    EXPECT_EQ(info->grid_thw, rows[i % 2].grid_thw);
  }
  EXPECT_EQ(planned[1].patches(), 24);
  EXPECT_EQ(planned[1].info()->units, (std::vector<ItemUnits>{{1, 24, 6}}));
  EXPECT_EQ(planned[2].patches(), 0);
  EXPECT_TRUE(planned[2].info()->units.empty());
  EXPECT_FALSE(planned[3].info());
  EXPECT_FALSE(planned[3].rows());
}

TEST_F(PlannedItems, KnowPatchesWhereverNothingHasToBeDecoded) {
  std::vector<float> row(256);
  const std::vector<PlannedItem> planned = engine_.plan_items(
      {two_images()[1], precomputed_rows({}, RowDType::kFloat32, 0, 256, "rows"),
       precomputed_rows({.data = row.data(), .rows = 1}, 256, "a row of the caller"),
       image_file("missing.jpg"), video_bytes({1, 2, 3}, "container")});
  const std::vector<std::optional<std::int64_t>> patches{24, 0, 0, std::nullopt, std::nullopt};
  for (std::size_t i = 0; i < planned.size(); ++i) EXPECT_EQ(planned[i].patches(), patches[i]);
  EXPECT_EQ(planned[2].rows(), 1);
}

TEST_F(PlannedItems, HoldTheBytesThatTheyWereMadeOf) {
  MediaItem item = two_images()[1];
  const std::uint8_t* const bytes = item.content().data();
  const std::vector<PlannedItem> copies(2, plan(std::move(item)));
  EXPECT_EQ(copies[0].media().content().data(), bytes);
  EXPECT_EQ(&copies[1].media(), &copies[0].media());
}

TEST_F(PlannedItems, HaveTheRowsOfTheirItems) {
  std::vector<MediaItem> items = two_images();
  items.push_back(video_path(model_ + "/video_frames"));
  items.push_back(precomputed_rows(std::vector<std::uint8_t>(2 * 256 * sizeof(float)),
                                   RowDType::kFloat32, 2, 256, "rows"));
  const std::vector<Embedding> rows = engine_.encode(items);
  const std::vector<Embedding> again = engine_.encode(engine_.plan_items(items));
  const PlannedItem unplanned{items[0]};
  EXPECT_FALSE(unplanned.rows());
  EXPECT_EQ(encode(unplanned).data, rows[0].data);
  for (std::size_t i = 0; i < items.size(); ++i) EXPECT_EQ(again[i].data, rows[i].data) << i;
}

TEST_F(PlannedItems, AreRefusedByAnotherEngine) {
  Engine other = Engine::load(model_, {.device = "cpu", .num_threads = 1});
  const std::vector<PlannedItem> planned = engine_.plan_items(two_images());
  test::expect_error(ErrorCode::kInvalidArgument, "image: was planned by another engine",
                     [&] { (void)other.encode(planned); });
}

// A header is read twice: for the plan, and with the pixels.
TEST_F(PlannedItems, ArePlannedOnce) {
  test::CountedFile photo(model_ + "/images/photo_180x180.jpg");
  const std::vector<MediaItem> items{
      image_file(photo.path()), image_rgb(std::vector<std::uint8_t>(64 * 96 * 3), 64, 96, "rgb")};
  (void)engine_.encode(items);
  EXPECT_EQ(photo.take_opens(), 2);
  const std::vector<PlannedItem> planned = engine_.plan_items(items);
  EXPECT_EQ(photo.take_opens(), 1);
  (void)engine_.encode(planned);
  EXPECT_EQ(photo.take_opens(), 1);
  const std::int64_t first = *planned[0].rows();
  const std::int64_t second = *planned[1].rows();
  std::vector<float> memory(static_cast<std::size_t>(256 * (first + second)));
  const std::vector<RowBlock> blocks{{.data = memory.data(), .rows = first},
                                     {.data = memory.data() + 256 * first, .rows = second}};
  (void)engine_.encode(planned, blocks, {});
  EXPECT_EQ(photo.take_opens(), 1);
  (void)engine_.encode(items, blocks, {});
  EXPECT_EQ(photo.take_opens(), 2);
}

// Files that have changed between the plan and the encoding.

TEST_F(PlannedItems, OfAFileThatHasAnotherSizeNowHaveItsRows) {
  const PlannedItem small = plan(image_file(replace("noise_101x61.png")));
  const PlannedItem large = plan(image_file(replace("photo_180x180.jpg")));
  ASSERT_LT(small.rows(), large.rows());
  const Embedding photo = encode(large);
  EXPECT_EQ(photo.rows, large.rows());
  const Embedding grown = encode(small);
  EXPECT_EQ(grown.rows, photo.rows);
  EXPECT_EQ(grown.data, photo.data);
  replace("noise_101x61.png");
  const Embedding shrunk = encode(large);
  EXPECT_EQ(shrunk.rows, small.rows());
  EXPECT_EQ(shrunk.data, encode(small).data);
}

TEST_F(PlannedItems, OfAFileThatHasOutgrownItsDestinationFail) {
  const PlannedItem item = plan(image_file(replace("noise_101x61.png")));
  std::vector<float> memory(static_cast<std::size_t>(256 * *item.rows()));
  const RowBlock block{.data = memory.data(), .rows = *item.rows()};
  replace("photo_180x180.jpg");
  test::expect_error(ErrorCode::kInvalidArgument, file_,
                     [&] { (void)engine_.encode(std::span(&item, 1), std::span(&block, 1), {}); });
  EXPECT_EQ(memory, std::vector<float>(memory.size())) << "nothing is written";
}

TEST_F(PlannedItems, OfAFileThatIsNoImageAnyMoreFail) {
  const PlannedItem item = plan(image_file(replace("noise_101x61.png")));
  std::ofstream(file_, std::ios::trunc) << "no image";
  const Embedding broken = encode(item);
  ASSERT_TRUE(broken.error);
  EXPECT_EQ(broken.error->code(), ErrorCode::kUnsupported);
  std::filesystem::remove(file_);
  EXPECT_EQ(encode(item).error->code(), ErrorCode::kNotFound);
}

TEST_F(PlannedItems, OfALongCallKeepTheirRowsWhenFilesChange) {
  std::vector<MediaItem> items(150, image_file(replace("noise_101x61.png")));  // several windows
  const std::vector<PlannedItem> planned = engine_.plan_items(items);
  replace("shapes_120x90.png");
  const std::vector<Embedding> rows = engine_.encode(planned);
  const Embedding alone = engine_.encode(std::span(items).first(1)).front();
  for (const Embedding& item : rows) EXPECT_EQ(item.data, alone.data);
}

TEST(PlannedTiles, OfAFileThatHasOtherTilesNowHaveItsRows) {
  const std::string model = test::golden_folder("internvl", "golden.safetensors");
  Engine engine = Engine::load(model, {.device = "cpu", .num_threads = 1});
  const test::TemporaryDirectory folder;
  const auto put = [&](const std::string& image) {
    std::filesystem::copy_file(model + "/images/" + image, folder / "image",
                               std::filesystem::copy_options::overwrite_existing);
  };
  const auto encoded = [&](std::span<const PlannedItem> items) { return engine.encode(items)[0]; };
  put("disc_60x50.png");
  const std::vector<PlannedItem> few = engine.plan_items({image_file(folder / "image")});
  put("gradient_64x200.png");
  const std::vector<PlannedItem> many = engine.plan_items({image_file(folder / "image")});
  ASSERT_NE(few[0].info()->units, many[0].info()->units);
  EXPECT_EQ(encoded(few).data, encoded(many).data);
  put("disc_60x50.png");
  EXPECT_EQ(encoded(few).data, encoded(many).data);
}

}  // namespace
}  // namespace fovea
