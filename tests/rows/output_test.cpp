// Rows for the caller: element types, checked access, and the safetensors file.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "checkpoint/safetensors.h"
#include "core/json.h"
#include "core/row_dtype.h"
#include "fovea/embedding.h"
#include "support/expect_error.h"
#include "support/grouped_locale.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

constexpr std::array kRowDTypes{RowDType::kFloat32, RowDType::kBFloat16, RowDType::kFloat16};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Values as elements of a dtype.
std::vector<std::byte> stored_as(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * size_of(dtype));
  narrow_from_f32(values.data(), dtype, bytes.data(), values.size());
  return bytes;
}

/// An embedding of one row.
Embedding row_of(const std::vector<float>& values, RowDType dtype = RowDType::kFloat32) {
  const std::vector<std::byte> bytes = stored_as(to_dtype(dtype), values);
  Embedding row;
  row.rows = 1;
  row.width = std::ssize(values);
  row.dtype = dtype;
  row.data = RowBytes(bytes);
  return row;
}

TEST(ConvertRows, ConvertsEveryPairOfTypesOverAnyNumberOfElements) {
  std::vector<float> values(2'500);  // more than are converted at once
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<float>(i)) * 3.0f;
  for (const DType from : {DType::kF32, DType::kBF16, DType::kF16}) {
    const std::vector<std::byte> source = stored_as(from, values);
    std::vector<float> wide(values.size());
    widen_to_f32(from, source.data(), wide.data(), wide.size());
    for (const RowDType to : kRowDTypes) {
      std::vector<std::byte> converted(values.size() * size_of(to_dtype(to)));
      convert_rows(from, source.data(), to, converted.data(), values.size());
      EXPECT_EQ(converted, stored_as(to_dtype(to), wide)) << to_string(from);
    }
  }
}

TEST(ConvertRows, TakesMemoryOfAnyAlignment) {
  const std::vector<float> values{0.5f, -2.0f, 3.0f};
  for (const RowDType from : kRowDTypes) {
    std::vector<std::byte> source = stored_as(to_dtype(from), values);
    source.insert(source.begin(), std::byte{});
    for (const RowDType to : kRowDTypes) {
      std::vector<std::byte> converted(1 + values.size() * size_of(to_dtype(to)));
      convert_rows(to_dtype(from), source.data() + 1, to, converted.data() + 1, values.size());
      converted.erase(converted.begin());
      EXPECT_EQ(converted, stored_as(to_dtype(to), values));
    }
  }
}

TEST(ConvertRows, CopiesTheBitsOfEqualTypes) {
  const std::uint32_t quiet_nan_with_payload = 0xffc12345;
  std::uint32_t copy = 0;
  convert_rows(DType::kF32, reinterpret_cast<const std::byte*>(&quiet_nan_with_payload),
               RowDType::kFloat32, reinterpret_cast<std::byte*>(&copy), 1);
  EXPECT_EQ(copy, quiet_nan_with_payload);
}

TEST(ConvertRows, NoElementsNeedNoMemory) {
  convert_rows(DType::kF32, nullptr, RowDType::kFloat32, nullptr, 0);
  convert_rows(DType::kBF16, nullptr, RowDType::kFloat16, nullptr, 0);
}

TEST(EmbeddingAt, ReadsEveryElementType) {
  for (const RowDType dtype : kRowDTypes) {
    const Embedding row = row_of({0.5f, -2.0f}, dtype);
    EXPECT_EQ(row.at(0, 0), 0.5f);
    EXPECT_EQ(row.at(0, 1), -2.0f);
  }
}

TEST(EmbeddingAt, RefusesIndicesOutsideOfTheRows) {
  const Embedding row = row_of({1, 2, 3});
  for (const auto& [r, c] : {std::pair{1, 0}, {0, 3}, {-1, 0}, {0, -1}}) {
    test::expect_error(ErrorCode::kInvalidArgument, "embedding of 1x3 has no element [",
                       [&, r = r, c = c] { (void)row.at(r, c); });
  }
}

TEST(EmbeddingAt, RefusesRowsThatTheDataDoesNotHave) {
  Embedding row = row_of({1, 2, 3});
  row.name = "image";
  row.rows = 100;
  test::expect_error(ErrorCode::kInvalidArgument,
                     "image: 100 rows of 3 x float32 do not take 12 bytes",
                     [&] { (void)row.at(99, 2); });
}

TEST(EmbeddingIsFinite, FindsInfinitiesAndNanOfEveryType) {
  for (const RowDType dtype : kRowDTypes) {
    EXPECT_TRUE(row_of({}, dtype).is_finite());
    EXPECT_TRUE(row_of({0, -1, 65'504}, dtype).is_finite());  // the largest float16
    EXPECT_FALSE(row_of({0, -kInfinity}, dtype).is_finite());
    EXPECT_FALSE(row_of({std::nanf(""), 0}, dtype).is_finite());
  }
}

class SaveSafetensors : public ::testing::Test {
 protected:
  const test::TemporaryDirectory folder_;
  const std::string path_ = folder_ / "rows.safetensors";
};

TEST_F(SaveSafetensors, NumbersTensorsByItemAndLeavesOutFailures) {
  std::vector<Embedding> items{row_of({1, 2}), {}, row_of({3, 4}, RowDType::kFloat16)};
  items[1].error = Error(ErrorCode::kNotFound, "missing.jpg: no such file");
  items[2].grid_thw = {1, 2, 2};
  save_safetensors(path_, items, {});
  const checkpoint::SafetensorsFile file(path_);
  EXPECT_EQ(file.header().tensors.size(), 3u);
  EXPECT_EQ(file.tensor("item_0").shape, (Shape{1, 2}));
  EXPECT_EQ(file.tensor("item_2").dtype, DType::kF16);
  std::array<std::int64_t, 3> grid{};
  std::memcpy(grid.data(), file.tensor("item_2.grid_thw").data, sizeof(grid));
  EXPECT_EQ(grid, items[2].grid_thw);
}

TEST_F(SaveSafetensors, RefusesRowsThatTheDataDoesNotHave) {
  Embedding row = row_of({1, 2, 3});
  row.name = "image";
  for (const std::int64_t rows : {std::int64_t{100}, std::int64_t{-1}, std::int64_t{1} << 62}) {
    row.rows = rows;
    test::expect_error(ErrorCode::kInvalidArgument, "rows of 3 x float32 do not take 12 bytes",
                       [&] {
                         save_safetensors(path_, {&row, 1}, {});
                       });
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(SaveSafetensors, DescribesEveryItemInTheMetadata) {
  std::vector<Embedding> items{row_of({1, 2}, RowDType::kBFloat16), {}};
  items[0].name = "photo\xff.jpg";  // no UTF-8
  items[0].modality = Modality::kVideo;
  items[0].timestamps = {0.25, 1.5};
  items[1].error = Error(ErrorCode::kNotFound, "no such file");
  save_safetensors(path_, items, {});
  const checkpoint::SafetensorsFile file(path_);
  const JsonDocument text =
      JsonDocument::parse(file.header().metadata.at("fovea.items"), "fovea.items");
  const std::vector<JsonView> list = text.root().elements();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].at("name").as_string(), "photo\ufffd.jpg");
  EXPECT_EQ(list[0].at("modality").as_string(), "video");
  EXPECT_EQ(list[0].at("num_embeds").as_int(), 1);
  EXPECT_EQ(list[0].at("width").as_int(), 2);
  EXPECT_EQ(list[0].at("dtype").as_string(), "bfloat16");
  ASSERT_EQ(list[0].at("timestamps").elements().size(), 2u);
  EXPECT_EQ(list[0].at("timestamps").elements()[1].as_number(), 1.5);
  EXPECT_FALSE(list[0].find("grid_thw"));
  EXPECT_EQ(list[1].at("error").as_string(), "no such file");
  EXPECT_FALSE(list[1].find("num_embeds"));
}

TEST_F(SaveSafetensors, MetadataOfTheCallerComesBesideItsOwn) {
  save_safetensors(path_, {}, {{"fovea.model", "tiny"}, {"format", "mine"}});
  const checkpoint::SafetensorsFile file(path_);
  EXPECT_EQ(file.header().metadata.at("fovea.model"), "tiny");
  EXPECT_EQ(file.header().metadata.at("format"), "pt");
  EXPECT_TRUE(file.header().metadata.contains("fovea.version"));
}

TEST_F(SaveSafetensors, WritesTheSameFileInEveryLocale) {
  const std::vector<Embedding> items(1001, row_of({1.0f, 2.0f}));  // item_1000 at byte 8000
  save_safetensors(path_, items, {});
  const std::string expected = test::read_text(path_);
  const test::GroupedLocale locale;
  save_safetensors(path_, items, {});
  EXPECT_EQ(test::read_text(path_), expected);
  EXPECT_EQ(checkpoint::SafetensorsFile(path_).tensor("item_1000").shape, (Shape{1, 2}));
}

TEST_F(SaveSafetensors, AFolderThatIsNotThereIsAnError) {
  test::expect_error(ErrorCode::kIo, "no/such/folder",
                     [&] { save_safetensors(folder_ / "no/such/folder/x", {}, {}); });
}

}  // namespace
}  // namespace fovea
