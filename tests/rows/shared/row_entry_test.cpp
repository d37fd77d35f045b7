#include "rows/shared/row_entry.h"

#include <gtest/gtest.h>

#include <cstring>

namespace fovea {
namespace {

Embedding item() {
  Embedding item;
  item.modality = Modality::kVideo;
  item.rows = 3;
  item.width = 4;
  item.dtype = RowDType::kBFloat16;
  item.data = RowBytes(3 * 4 * 2);
  for (std::size_t i = 0; i < item.data.size(); ++i) item.data.data()[i] = std::byte(i * 7);
  item.grid_thw = {2, 4, 6};
  item.timestamps = {0.25, 1.0 / 3};
  item.source_width_px = 640;
  item.source_height_px = 480;
  item.num_frames = 4;
  item.resized_width_px = 56;
  item.resized_height_px = 84;
  return item;
}

RowBytes bytes_of(const std::vector<std::byte>& bytes) { return RowBytes(std::span(bytes)); }

bool has_rows_of(const RowEntry& entry, const Embedding& item) {
  const ConstTensorView rows = entry.rows();
  return rows.bytes() == item.data.size() &&
         std::memcmp(rows.data, item.data.data(), rows.bytes()) == 0;
}

void expect_facts(const RowEntry& entry, const Embedding& expected) {
  const Embedding& facts = entry.facts;
  EXPECT_EQ(facts.modality, expected.modality);
  EXPECT_EQ(facts.rows, expected.rows);
  EXPECT_EQ(facts.width, expected.width);
  EXPECT_EQ(facts.dtype, expected.dtype);
  EXPECT_EQ(facts.grid_thw, expected.grid_thw);
  EXPECT_EQ(facts.timestamps, expected.timestamps);
  EXPECT_EQ(facts.source_width_px, expected.source_width_px);
  EXPECT_EQ(facts.source_height_px, expected.source_height_px);
  EXPECT_EQ(facts.num_frames, expected.num_frames);
  EXPECT_EQ(facts.resized_width_px, expected.resized_width_px);
  EXPECT_EQ(facts.resized_height_px, expected.resized_height_px);
}

TEST(RowEntry, ReadsBackAsItWas) {
  const auto entry = decode_entry("name", bytes_of(encode_entry("name", item())));
  ASSERT_TRUE(entry);
  expect_facts(*entry, item());
  EXPECT_TRUE(has_rows_of(*entry, item()));
}

TEST(RowEntry, NeedsNoGridAndNoTimes) {
  Embedding plain = item();
  plain.modality = Modality::kImage;
  plain.grid_thw.reset();
  plain.timestamps.clear();
  const auto entry = decode_entry("name", bytes_of(encode_entry("name", plain)));
  ASSERT_TRUE(entry);
  expect_facts(*entry, plain);
}

TEST(RowEntry, IsNothingUnderAnotherName) {
  EXPECT_FALSE(decode_entry("other", bytes_of(encode_entry("name", item()))));
}

TEST(RowEntry, IsNothingIfItIsNotWhole) {
  const std::vector<std::byte> whole = encode_entry("name", item());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode_entry("name", RowBytes(std::span(whole).first(size)))) << size;
  }
  std::vector<std::byte> longer = whole;
  longer.emplace_back();
  EXPECT_FALSE(decode_entry("name", bytes_of(longer)));
}

TEST(RowEntry, IsNothingOrTheSameIfAByteChanges) {
  const std::vector<std::byte> whole = encode_entry("name", item());
  int accepted = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const std::byte flip : {std::byte{1}, std::byte{0x20}, std::byte{0xff}}) {
      std::vector<std::byte> changed = whole;
      changed[i] ^= flip;
      const auto entry = decode_entry("name", bytes_of(changed));
      if (!entry) continue;
      ++accepted;
      expect_facts(*entry, item());
      EXPECT_TRUE(has_rows_of(*entry, item())) << i;
    }
  }
  EXPECT_LT(accepted, 100) << "blanks of the header, and the name of the tensor";
}

TEST(RowEntry, IsNothingForBytesOfOthers) {
  for (const std::string text : {"", "{}", "\x02\0\0\0\0\0\0\0{}"}) {
    EXPECT_FALSE(decode_entry("name", RowBytes(std::as_bytes(std::span(text)))));
  }
}

}  // namespace
}  // namespace fovea
