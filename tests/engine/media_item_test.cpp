// The makers of media items.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "fovea/embedding.h"
#include "fovea/media.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using ::testing::ElementsAre;
using Bytes = std::vector<std::uint8_t>;

TEST(MediaBytes, AreSharedByCopies) {
  const MediaBytes bytes(Bytes{1, 2, 3});
  const MediaBytes copy = bytes;  // NOLINT: the copy is what is tested
  EXPECT_EQ(copy.view().data(), bytes.view().data());
  EXPECT_TRUE(MediaBytes().view().empty());
  const MediaItem item = image_bytes(bytes, "upload");
  const std::vector<MediaItem> items(2, item);
  EXPECT_EQ(items[1].content().data(), bytes.view().data());
}

TEST(MediaItemOfAnImage, KeepsItsSourceAndName) {
  const MediaItem file = image_file("photo.jpg");
  EXPECT_EQ(std::get<EncodedFile>(file.source).path, "photo.jpg");
  EXPECT_EQ(file.name, "photo.jpg");
  EXPECT_THAT(file.paths(), ElementsAre("photo.jpg"));

  const MediaItem bytes = image_bytes({1, 2, 3}, "upload");
  EXPECT_TRUE(std::holds_alternative<EncodedBytes>(bytes.source));
  EXPECT_EQ(bytes.name, "upload");
  EXPECT_THAT(bytes.content(), ElementsAre(1, 2, 3));

  const MediaItem rgb = image_rgb(Bytes(6), 2, 1, "pixels");
  const auto& pixels = std::get<RgbFrames>(rgb.source);
  EXPECT_EQ(pixels.width_px, 2);
  EXPECT_EQ(pixels.height_px, 1);
  EXPECT_EQ(pixels.num_frames, 1);
  for (const MediaItem* item : {&file, &bytes, &rgb}) EXPECT_EQ(item->modality, Modality::kImage);
}

TEST(MediaItem, AVideoInMemoryIsSampledAtItsRate) {
  const MediaItem item = video_bytes({1, 2, 3}, "clip", 4.0);
  EXPECT_EQ(item.modality, Modality::kVideo);
  EXPECT_TRUE(std::holds_alternative<EncodedBytes>(item.source));
  EXPECT_EQ(item.name, "clip");
  EXPECT_EQ(item.content().size(), 3);
  EXPECT_EQ(item.fps, 4.0);
  EXPECT_EQ(video_bytes({}, "clip").fps, 2.0);
}

TEST(MediaItemOfAVideo, KeepsItsFramesAndRate) {
  const MediaItem item = video_rgb(Bytes(18), 3, 2, 1, 5.0, "clip");
  EXPECT_EQ(item.modality, Modality::kVideo);
  EXPECT_EQ(std::get<RgbFrames>(item.source).num_frames, 3);
  EXPECT_EQ(item.num_frames(), 3);
  EXPECT_EQ(item.fps, 5.0);
}

TEST(MediaItemOfAMatrix, KeepsItsDescription) {
  const MediaItem item = pixel_values(Bytes(16), RowDType::kFloat16, 4, 2, {1, 2, 2}, "processor");
  const auto& values = std::get<PixelValues>(item.source);
  EXPECT_EQ(values.patches.dtype, RowDType::kFloat16);
  EXPECT_EQ(values.patches.num_rows, 4);
  EXPECT_EQ(values.patches.row_width, 2);
  EXPECT_EQ(values.grid_thw, (std::array<std::int64_t, 3>{1, 2, 2}));

  const MediaItem rows = precomputed_rows(Bytes(8), RowDType::kFloat32, 1, 2, "cache");
  EXPECT_FALSE(std::get<PrecomputedRows>(rows.source).grid_thw);
}

TEST(MediaItemOfAnEmbedding, StandsForItsRows) {
  Embedding encoded;
  encoded.name = "photo.jpg";
  encoded.modality = Modality::kVideo;
  encoded.rows = 1;
  encoded.width = 2;
  encoded.dtype = RowDType::kBFloat16;
  encoded.data = RowBytes(std::vector{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}});
  encoded.grid_thw = {1, 2, 2};
  const MediaItem item = precomputed(encoded);
  EXPECT_EQ(item.name, "photo.jpg");
  EXPECT_EQ(item.modality, Modality::kVideo);
  const auto& known = std::get<PrecomputedRows>(item.source);
  EXPECT_EQ(known.rows.dtype, RowDType::kBFloat16);
  EXPECT_EQ(known.rows.num_rows, 1);
  EXPECT_EQ(known.rows.row_width, 2);
  EXPECT_THAT(item.content(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(known.grid_thw, encoded.grid_thw);
}

TEST(MediaItemOfAnEmbedding, NeedsRows) {
  Embedding failed;
  failed.name = "photo.jpg";
  failed.error = Error(ErrorCode::kNotFound, "no such file");
  test::expect_error(ErrorCode::kInvalidArgument, "photo.jpg: failed and has no rows",
                     [&] { (void)precomputed(failed); });
}

TEST(MediaItemOfFrames, OwnsThemOrRefersToThem) {
  MediaItem own = video_frames({{1, 2}, {3}}, "clip", 4.0);
  EXPECT_EQ(own.modality, Modality::kVideo);
  EXPECT_EQ(own.num_frames(), 2);
  EXPECT_EQ(own.num_bytes(), 3U);
  EXPECT_TRUE(own.content().empty());
  EXPECT_EQ(own.fps, 4.0);
  const MediaItem copy = own;
  own = {};
  const auto& frames = std::get<EncodedFrames>(copy.source).frames;
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_THAT(frames[0].view(), ElementsAre(1, 2));
  const auto bytes = std::make_shared<const Bytes>(Bytes{5, 6, 7});
  const MediaItem borrowed = video_frames({MediaBytes(std::span(*bytes).first(1), bytes)}, "clip");
  EXPECT_EQ(std::get<EncodedFrames>(borrowed.source).frames[0].view().data(), bytes->data());
  EXPECT_EQ(bytes.use_count(), 2);
}

class MediaFolder : public ::testing::Test {
 protected:
  void add(const std::string& name) { test::write_text(folder_ / name, "x"); }
  [[nodiscard]] std::vector<std::string> paths(std::initializer_list<const char*> names) const {
    std::vector<std::string> all;
    for (const char* name : names) all.push_back(folder_ / name);
    return all;
  }
  const test::TemporaryDirectory folder_;
};

TEST_F(MediaFolder, ListsImageFilesByNameWhateverTheCaseOfTheirExtension) {
  for (const char* name :
       {"b.PNG", "c.jpeg", "a.jpg", "d.WebP", "f.bmp", "g.gif", "h.tif", "i.tiff", "j.AVIF",
        "k.heic", "l.HEIF", "m.hif", "notes.txt", "e.png.part", "jpg"})
    add(name);
  std::filesystem::create_directory(folder_ / "folder.png");
  EXPECT_EQ(images_in(folder_.path()),
            paths({"a.jpg", "b.PNG", "c.jpeg", "d.WebP", "f.bmp", "g.gif", "h.tif", "i.tiff",
                   "j.AVIF", "k.heic", "l.HEIF", "m.hif"}));
}

TEST_F(MediaFolder, WithoutImageFilesIsAnError) {
  add("notes.txt");
  test::expect_error(ErrorCode::kNotFound,
                     folder_.path() +
                         ": expected .jpg, .jpeg, .png, .webp, .bmp, .gif, .tif, .tiff, .avif, "
                         ".heic, .heif or .hif files, found none",
                     [&] { (void)images_in(folder_.path()); });
}

TEST_F(MediaFolder, IsAVideoOfItsImages) {
  add("2.png");
  add("1.png");
  const MediaItem item = video_path(folder_.path(), 4.0);
  EXPECT_EQ(item.modality, Modality::kVideo);
  EXPECT_EQ(std::get<FrameFiles>(item.source).paths, paths({"1.png", "2.png"}));
  EXPECT_EQ(item.name, folder_.path());
  EXPECT_EQ(item.num_frames(), 2);
  EXPECT_EQ(item.fps, 4.0);
}

TEST_F(MediaFolder, AVideoFileIsAContainer) {
  add("clip.mp4");
  const MediaItem item = video_path(folder_ / "clip.mp4");
  EXPECT_EQ(std::get<EncodedFile>(item.source).path, folder_ / "clip.mp4");
}

TEST_F(MediaFolder, AVideoThatIsNotThereIsAnError) {
  test::expect_error(ErrorCode::kNotFound, "none.mp4: no such video file or directory",
                     [&] { (void)video_path(folder_ / "none.mp4"); });
}

}  // namespace
}  // namespace fovea
