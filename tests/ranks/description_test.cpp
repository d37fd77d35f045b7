#include "ranks/description.h"

#include <gtest/gtest.h>

#include "ranks/mixed_items.h"
#include "support/expect_error.h"

namespace fovea::ranks {
namespace {

Embedding pruned_video() {
  Embedding item;
  item.modality = Modality::kVideo;
  item.rows = 3;
  item.width = 5;
  item.dtype = RowDType::kBFloat16;
  item.data.resize(30);
  item.grid_thw = {{2, 4, 6}};
  item.retained = {{0, 2, 7}};
  item.timestamps = {0.25, 1.5};
  item.source_width_px = 640;
  item.source_height_px = 480;
  item.num_frames = 4;
  item.resized_width_px = 96;
  item.resized_height_px = 64;
  item.times.encode_ms = 2.5;
  return item;
}

Embedding failed_image() {
  Embedding item;
  item.error.emplace(ErrorCode::kCorruptData, "photo.jpg: expected a JPEG");
  return item;
}

std::vector<std::byte> described(const std::vector<Embedding>& items) {
  std::vector<std::byte> bytes;
  for (const Embedding& item : items) append_description(item, bytes);
  return bytes;
}

TEST(Description, HoldsEverythingButRowsAndName) {
  const std::vector<Embedding> items{pruned_video(), failed_image(), Embedding()};
  const std::vector<std::byte> bytes = described(items);
  std::span<const std::byte> left = bytes;
  for (Embedding item : items) {
    Embedding read = read_description(left, 30);
    EXPECT_EQ(row_bytes(read), item.data.size());
    EXPECT_TRUE(read.data.empty());
    EXPECT_EQ(read.times.encode_ms, item.times.encode_ms);
    item.data = RowBytes();
    EXPECT_EQ(test::text_of(read), test::text_of(item));
  }
  EXPECT_TRUE(left.empty());
}

TEST(Description, IsRefusedWhereverItIsCut) {
  const std::vector<std::byte> bytes = described({pruned_video()});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::span<const std::byte> cut(bytes.data(), size);
    test::expect_error(ErrorCode::kCorruptData, "description of an embedding: expected",
                       [&] { (void)read_description(cut, 30); });
  }
}

TEST(Description, IsRefusedWithMoreRowsThanThereAre) {
  const std::vector<std::byte> bytes = described({pruned_video()});
  std::span<const std::byte> left = bytes;
  test::expect_error(ErrorCode::kCorruptData, "3 rows of 5 do not fit into 29 bytes",
                     [&] { (void)read_description(left, 29); });
  for (const auto& [rows, width] : {std::pair{std::int64_t{-1}, std::int64_t{1}},
                                    {std::int64_t{1} << 62, std::int64_t{1} << 62}}) {
    Embedding item = failed_image();
    item.rows = rows;
    item.width = width;
    const std::vector<std::byte> wrong = described({item});
    std::span<const std::byte> rest = wrong;
    EXPECT_THROW((void)read_description(rest, 1000), Error) << rows;
  }
}

}  // namespace
}  // namespace fovea::ranks
