// The makers of media items.
#include <gtest/gtest.h>

#include <filesystem>

#include "fovea/embedding.h"
#include "fovea/media.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using Source = MediaItem::Source;
using Bytes = std::vector<std::uint8_t>;

TEST(MediaItemOfAnImage, KeepsItsSourceAndName) {
  const MediaItem file = image_file("photo.jpg");
  EXPECT_EQ(file.source, Source::kFile);
  EXPECT_EQ(file.name, "photo.jpg");
  EXPECT_EQ(file.paths, std::vector<std::string>{"photo.jpg"});

  const MediaItem bytes = image_bytes({1, 2, 3}, "upload");
  EXPECT_EQ(bytes.source, Source::kBytes);
  EXPECT_EQ(bytes.name, "upload");
  EXPECT_EQ(bytes.bytes, (Bytes{1, 2, 3}));

  const MediaItem rgb = image_rgb(Bytes(6), 2, 1, "pixels");
  EXPECT_EQ(rgb.source, Source::kRgb);
  EXPECT_EQ(rgb.width_px, 2);
  EXPECT_EQ(rgb.height_px, 1);
  EXPECT_EQ(rgb.num_frames, 1);
  for (const MediaItem* item : {&file, &bytes, &rgb}) EXPECT_EQ(item->modality, Modality::kImage);
}

TEST(MediaItem, AVideoInMemoryIsSampledAtItsRate) {
  const MediaItem item = video_bytes({1, 2, 3}, "clip", 4.0);
  EXPECT_EQ(item.modality, Modality::kVideo);
  EXPECT_EQ(item.source, MediaItem::Source::kBytes);
  EXPECT_EQ(item.name, "clip");
  EXPECT_EQ(item.bytes.size(), 3);
  EXPECT_EQ(item.fps, 4.0);
  EXPECT_EQ(video_bytes({}, "clip").fps, 2.0);
}

TEST(MediaItemOfAVideo, KeepsItsFramesAndRate) {
  const MediaItem item = video_rgb(Bytes(18), 3, 2, 1, 5.0, "clip");
  EXPECT_EQ(item.modality, Modality::kVideo);
  EXPECT_EQ(item.source, Source::kRgb);
  EXPECT_EQ(item.num_frames, 3);
  EXPECT_EQ(item.fps, 5.0);
}

TEST(MediaItemOfAMatrix, KeepsItsDescription) {
  const MediaItem values =
      pixel_values(Bytes(16), RowDType::kFloat16, 4, 2, {1, 2, 2}, "processor");
  EXPECT_EQ(values.source, Source::kPixelValues);
  EXPECT_EQ(values.row_dtype, RowDType::kFloat16);
  EXPECT_EQ(values.num_rows, 4);
  EXPECT_EQ(values.row_width, 2);
  EXPECT_EQ(values.grid_thw, (std::array<std::int64_t, 3>{1, 2, 2}));

  const MediaItem rows = precomputed_rows(Bytes(8), RowDType::kFloat32, 1, 2, "cache");
  EXPECT_EQ(rows.source, Source::kRows);
  EXPECT_FALSE(rows.grid_thw);
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
  EXPECT_EQ(item.source, Source::kRows);
  EXPECT_EQ(item.name, "photo.jpg");
  EXPECT_EQ(item.modality, Modality::kVideo);
  EXPECT_EQ(item.row_dtype, RowDType::kBFloat16);
  EXPECT_EQ(item.num_rows, 1);
  EXPECT_EQ(item.row_width, 2);
  EXPECT_EQ(item.bytes, (Bytes{1, 2, 3, 4}));
  EXPECT_EQ(item.grid_thw, encoded.grid_thw);
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
  EXPECT_EQ(own.source, Source::kFrames);
  EXPECT_EQ(own.modality, Modality::kVideo);
  EXPECT_EQ(own.num_frames, 2);
  EXPECT_EQ(own.fps, 4.0);
  const MediaItem copy = own;
  own = {};
  ASSERT_EQ(copy.frames.size(), 2U);
  EXPECT_EQ(copy.frames[0][1], 2);
  const auto bytes = std::make_shared<const Bytes>(Bytes{5, 6, 7});
  const MediaItem borrowed = video_frames({std::span(*bytes).first(1)}, bytes, "clip");
  EXPECT_EQ(borrowed.frames[0].data(), bytes->data());
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
  for (const char* name : {"b.PNG", "c.jpeg", "a.jpg", "d.WebP", "notes.txt", "e.png.part", "jpg"})
    add(name);
  std::filesystem::create_directory(folder_ / "folder.png");
  EXPECT_EQ(images_in(folder_.path()), paths({"a.jpg", "b.PNG", "c.jpeg", "d.WebP"}));
}

TEST_F(MediaFolder, WithoutImageFilesIsAnError) {
  add("notes.txt");
  test::expect_error(ErrorCode::kNotFound,
                     folder_.path() + ": expected .jpg, .jpeg, .png or .webp files, found none",
                     [&] { (void)images_in(folder_.path()); });
}

TEST_F(MediaFolder, IsAVideoOfItsImages) {
  add("2.png");
  add("1.png");
  const MediaItem item = video_path(folder_.path(), 4.0);
  EXPECT_EQ(item.modality, Modality::kVideo);
  EXPECT_EQ(item.source, Source::kFrameFiles);
  EXPECT_EQ(item.name, folder_.path());
  EXPECT_EQ(item.paths, paths({"1.png", "2.png"}));
  EXPECT_EQ(item.num_frames, 2);
  EXPECT_EQ(item.fps, 4.0);
}

TEST_F(MediaFolder, AVideoFileIsAContainer) {
  add("clip.mp4");
  const MediaItem item = video_path(folder_ / "clip.mp4");
  EXPECT_EQ(item.source, Source::kFile);
  EXPECT_EQ(item.paths, paths({"clip.mp4"}));
}

TEST_F(MediaFolder, AVideoThatIsNotThereIsAnError) {
  test::expect_error(ErrorCode::kNotFound, "none.mp4: no such video file or directory",
                     [&] { (void)video_path(folder_ / "none.mp4"); });
}

}  // namespace
}  // namespace fovea
