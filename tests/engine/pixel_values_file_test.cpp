// Files of pixel values: the tensors as the processors name them, several items in one.
#include <gtest/gtest.h>

#include <cstring>

#include "checkpoint/safetensors.h"
#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using checkpoint::OutputTensor;

/// Tensors that a test puts into a file.
class PixelValuesFile : public ::testing::Test {
 protected:
  /// Values 0, 1, 2, ...
  void add_values(const std::string& name, const Shape& shape, DType dtype = DType::kF32) {
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    std::vector<std::byte> bytes(values.size() * 8);  // wide enough for every dtype
    if (dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16) {
      narrow_from_f32(values.data(), dtype, bytes.data(), values.size());
    }
    add(name, std::move(bytes), dtype, shape);
  }
  void add_grids(const std::string& name, const std::vector<std::array<std::int64_t, 3>>& grids) {
    std::vector<std::byte> bytes(grids.size() * 24 + 1);
    if (!grids.empty()) std::memcpy(bytes.data(), grids.data(), grids.size() * 24);
    add(name, std::move(bytes), DType::kI64, {static_cast<std::int64_t>(grids.size()), 3});
  }
  void add(const std::string& name, std::vector<std::byte> bytes, DType dtype, const Shape& shape) {
    memory_.push_back(std::move(bytes));
    tensors_.push_back({name, {memory_.back().data(), dtype, shape}});
  }
  [[nodiscard]] std::vector<MediaItem> read() {
    checkpoint::write_safetensors(path_, tensors_, {});
    return pixel_values_file(path_);
  }
  void expect_error(ErrorCode code, const std::string& part) {
    test::expect_error(code, path_ + part, [&] { (void)read(); });
  }

  test::TemporaryDirectory folder_;
  const std::string path_ = folder_ / "batch.safetensors";

 private:
  std::vector<std::vector<std::byte>> memory_;  // moving a vector does not move its elements
  std::vector<OutputTensor> tensors_;
};

const PixelValues& values_in(const MediaItem& item) { return std::get<PixelValues>(item.source); }

float value_at(const MediaItem& item, std::size_t index) {
  float value = 0;
  std::memcpy(&value, item.content().data() + index * sizeof(float), sizeof(value));
  return value;
}

TEST_F(PixelValuesFile, ItemsFollowEachOtherByTheirGrids) {
  add_values("pixel_values", {20, 3});
  add_grids("image_grid_thw", {{1, 2, 2}, {1, 4, 2}, {1, 2, 4}});
  const std::vector<MediaItem> items = read();
  ASSERT_EQ(items.size(), 3U);
  const std::int64_t patches[] = {4, 8, 8};
  const float first[] = {0, 12, 36};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(items[i].modality, Modality::kImage);
    EXPECT_EQ(items[i].name, path_ + "[" + std::to_string(i) + "]");
    EXPECT_EQ(values_in(items[i]).patches.num_rows, patches[i]);
    EXPECT_EQ(values_in(items[i]).patches.row_width, 3);
    EXPECT_EQ(items[i].content().size(), static_cast<std::size_t>(patches[i]) * 12);
    EXPECT_EQ(value_at(items[i], 0), first[i]);
  }
  EXPECT_EQ(values_in(items[1]).grid_thw, (std::array<std::int64_t, 3>{1, 4, 2}));
}

TEST_F(PixelValuesFile, ImagesComeBeforeVideosAndOtherTensorsDoNotCount) {
  add_values("pixel_values_videos", {16, 3}, DType::kBF16);
  add_grids("video_grid_thw", {{4, 2, 2}});
  add_values("pixel_values", {4, 3}, DType::kF16);
  add_grids("image_grid_thw", {{1, 2, 2}});
  add_values("input_ids", {7}, DType::kI64);
  const std::vector<MediaItem> items = read();
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].modality, Modality::kImage);
  EXPECT_EQ(values_in(items[0]).patches.dtype, RowDType::kFloat16);
  EXPECT_EQ(items[1].modality, Modality::kVideo);
  EXPECT_EQ(values_in(items[1]).patches.dtype, RowDType::kBFloat16);
  EXPECT_EQ(values_in(items[1]).patches.num_rows, 16);
}

TEST_F(PixelValuesFile, ASingleItemHasTheNameOfTheFile) {
  add_values("pixel_values", {4, 3});
  add_grids("image_grid_thw", {{1, 2, 2}});
  EXPECT_EQ(read().front().name, path_);
}

TEST_F(PixelValuesFile, WithoutPixelValuesIsRefused) {
  add_grids("image_grid_thw", {{1, 2, 2}});
  expect_error(ErrorCode::kNotFound, ": expected pixel_values with image_grid_thw or");
}

TEST_F(PixelValuesFile, ValuesWithoutGridsAreRefused) {
  add_values("pixel_values", {4, 3});
  add_grids("video_grid_thw", {{1, 2, 2}});
  expect_error(ErrorCode::kNotFound, ": pixel_values comes without image_grid_thw");
}

TEST_F(PixelValuesFile, AnEmptyListOfGridsIsRefused) {
  add_values("pixel_values", {0, 3});
  add_grids("image_grid_thw", {});
  expect_error(ErrorCode::kCorruptData, ": image_grid_thw: expected int64 [items >= 1, 3], got");
}

TEST_F(PixelValuesFile, GridsOfAnotherShapeAreRefused) {
  add_values("pixel_values", {4, 3});
  add("image_grid_thw", std::vector<std::byte>(24), DType::kI64, {3});
  expect_error(ErrorCode::kCorruptData,
               ": image_grid_thw: expected int64 [items >= 1, 3], got int64 [3]");
}

TEST_F(PixelValuesFile, ValuesMayBeBytes) {
  add_grids("image_grid_thw", {{1, 1, 2}, {1, 2, 1}});
  add("pixel_values", std::vector<std::byte>(12, std::byte{7}), DType::kU8, {4, 3});
  const std::vector<MediaItem> items = read();
  ASSERT_EQ(items.size(), 2);
  const auto& pixels = std::get<PixelBytes>(items[1].source);
  EXPECT_EQ(pixels.num_patches, 2);
  EXPECT_EQ(pixels.patch_dim, 3);
  EXPECT_EQ(pixels.grid_thw, (std::array<std::int64_t, 3>{1, 2, 1}));
  EXPECT_EQ(items[1].num_bytes(), 6);
}

TEST_F(PixelValuesFile, ValuesOfAnotherTypeAreRefused) {
  add_grids("image_grid_thw", {{1, 2, 2}});
  add_values("pixel_values", {4, 3}, DType::kI32);
  expect_error(ErrorCode::kCorruptData,
               ": pixel_values: expected float32, bfloat16, float16 or uint8, got int32");
}

TEST_F(PixelValuesFile, ValuesOfAnotherRankAreRefused) {
  add_grids("image_grid_thw", {{1, 2, 2}});
  add_values("pixel_values", {1, 4, 3});
  expect_error(ErrorCode::kCorruptData,
               ": pixel_values: expected [patches, values], got [1, 4, 3]");
}

TEST_F(PixelValuesFile, GridsOfMorePatchesThanThereAreAreRefused) {
  add_values("pixel_values", {7, 3});
  add_grids("image_grid_thw", {{1, 2, 2}, {1, 2, 2}});
  expect_error(ErrorCode::kCorruptData, ": pixel_values: grid 1x2x2 does not fit the 3 patches");
}

TEST_F(PixelValuesFile, GridsOfFewerPatchesThanThereAreAreRefused) {
  add_values("pixel_values", {9, 3});
  add_grids("image_grid_thw", {{1, 2, 2}, {1, 2, 2}});
  expect_error(ErrorCode::kCorruptData, ": pixel_values: 9 patches, the grids have 8");
}

TEST_F(PixelValuesFile, GridsThatAreNoneAreRefused) {
  add_values("pixel_values", {4, 3});
  add_grids("image_grid_thw", {{1, -2, -2}});
  expect_error(ErrorCode::kCorruptData, ": pixel_values: grid 1x-2x-2 does not fit");
}

TEST_F(PixelValuesFile, HugeGridsAreRefused) {
  add_values("pixel_values", {4, 3});
  add_grids("image_grid_thw", {{1, std::int64_t{1} << 33, std::int64_t{1} << 33}});
  expect_error(ErrorCode::kCorruptData, ": pixel_values: grid 1x8589934592x8589934592");
}

TEST_F(PixelValuesFile, NoFileIsRefused) {
  test::expect_error(ErrorCode::kNotFound, "none.safetensors",
                     [&] { (void)pixel_values_file(folder_ / "none.safetensors"); });
}

}  // namespace
}  // namespace fovea
