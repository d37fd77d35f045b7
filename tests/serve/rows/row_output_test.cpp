#include "serve/rows/row_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rows_fixture.h"
#include "serve/text/base64.h"

namespace fovea::serve {
namespace {

using test::item_of;
using test::numbers_of;
using test::refusal;
using testing::ElementsAre;
using testing::HasSubstr;
using Shape = std::vector<std::int64_t>;

/// The only tensor of an item.
RowTensor tensor_of(const std::shared_ptr<const Embedding>& item, const RowOptions& options) {
  std::vector<RowTensor> tensors = make_tensors(item, item->width, options);
  EXPECT_EQ(tensors.size(), 1U);
  return tensors.front();
}

TEST(EngineDtype, IsThatOfTheRowsUnlessTheyAreComputed) {
  RowOptions options{.type = ElementType::kBFloat16};
  EXPECT_EQ(engine_dtype(options), RowDType::kBFloat16);
  options.pooling = Pooling::kFirst;
  EXPECT_EQ(engine_dtype(options), RowDType::kBFloat16);
  options.normalize = true;
  EXPECT_EQ(engine_dtype(options), RowDType::kFloat32);
  EXPECT_EQ(engine_dtype({.pooling = Pooling::kMean, .type = ElementType::kFloat16}),
            RowDType::kFloat32);
  EXPECT_EQ(engine_dtype({.type = ElementType::kFp8E4M3}), RowDType::kFloat32);
  EXPECT_EQ(engine_dtype({.type = ElementType::kFloat16}), RowDType::kFloat16);
}

TEST(MakeTensors, RefersToRowsThatNeedNoChange) {
  const auto item = item_of(2, {1, 2, 3, 4}, RowDType::kBFloat16);
  const RowTensor tensor = tensor_of(item, {.type = ElementType::kBFloat16});
  EXPECT_EQ(tensor.bytes.bytes.data(), item->data.data());
  EXPECT_EQ(tensor.bytes.bytes.size(), item->data.size());
  EXPECT_EQ(tensor.bytes.owner, item);
  EXPECT_EQ(tensor.shape, (Shape{2, 2}));
}

TEST(MakeTensors, RefersToTheRowThatPoolingPicks) {
  const auto item = item_of(2, {1, 2, 3, 4});
  const RowTensor last = tensor_of(item, {.pooling = Pooling::kLast});
  EXPECT_EQ(last.bytes.bytes.data(), item->data.data() + 8);
  EXPECT_EQ(last.shape, Shape{2});
  EXPECT_THAT(numbers_of(tensor_of(item, {.pooling = Pooling::kFirst})), ElementsAre(1, 2));
}

/// The test vectors of the encodings.
TEST(MakeTensors, WritesTheElementsOfEachType) {
  const auto base64 = [](RowDType dtype, ElementType type, ByteOrder order) {
    const auto item = item_of(1, {1.0F, -2.5F}, dtype);
    return to_base64(tensor_of(item, {.type = type, .order = order}).bytes.bytes);
  };
  using enum ByteOrder;
  EXPECT_EQ(base64(RowDType::kFloat32, ElementType::kFloat32, kLittle), "AACAPwAAIMA=");
  EXPECT_EQ(base64(RowDType::kFloat32, ElementType::kFloat32, kBig), "P4AAAMAgAAA=");
  EXPECT_EQ(base64(RowDType::kBFloat16, ElementType::kBFloat16, kLittle), "gD8gwA==");
  EXPECT_EQ(base64(RowDType::kBFloat16, ElementType::kBFloat16, kBig), "P4DAIA==");
  EXPECT_EQ(base64(RowDType::kFloat16, ElementType::kFloat16, kLittle), "ADwAwQ==");
  EXPECT_EQ(base64(RowDType::kFloat32, ElementType::kFp8E4M3, kBig), "OMI=");
  EXPECT_EQ(base64(RowDType::kFloat32, ElementType::kFp8E5M2, kLittle), "PME=");
}

TEST(MakeTensors, PoolsOverRows) {
  const auto item = item_of(3, {1, -8, 2, -4, 9, -6});
  EXPECT_THAT(numbers_of(tensor_of(item, {.pooling = Pooling::kMean})), ElementsAre(4, -6));
  EXPECT_THAT(numbers_of(tensor_of(item, {.pooling = Pooling::kMax})), ElementsAre(9, -4));
  EXPECT_EQ(tensor_of(item, {.pooling = Pooling::kMax}).shape, Shape{2});
}

TEST(MakeTensors, SumsMeansInDouble) {
  const auto item = item_of(4, {1e8F, 1, -1e8F, 1});
  EXPECT_THAT(numbers_of(tensor_of(item, {.pooling = Pooling::kMean})), ElementsAre(0.5F));
}

TEST(MakeTensors, NormalisesEachVectorAfterCuttingIt) {
  const auto item = item_of(2, {3, 4, 12, 0, 0, 7});
  const RowTensor tensor = tensor_of(item, {.dimensions = 2, .normalize = true});
  EXPECT_THAT(numbers_of(tensor), ElementsAre(0.6F, 0.8F, 0, 0));
  EXPECT_EQ(tensor.shape, (Shape{2, 2}));
}

TEST(MakeTensors, NormalisesAMeanBeforeItRounds) {
  const auto item = item_of(2, {2, 0, 4, 8});
  const RowTensor tensor = tensor_of(
      item, {.pooling = Pooling::kMean, .normalize = true, .type = ElementType::kFp8E4M3});
  EXPECT_EQ(to_base64(tensor.bytes.bytes), "MjU=");  // 0.625 for 0.6, 0.8125 for 0.8
}

TEST(MakeTensors, CutsVectors) {
  const auto item = item_of(2, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(numbers_of(tensor_of(item, {.dimensions = 2})), ElementsAre(1, 2, 4, 5));
  EXPECT_EQ(tensor_of(item, {.dimensions = 3}).bytes.bytes.data(), item->data.data());
  for (const std::int64_t wrong : {0, -1, 4}) {
    const ApiError error = refusal([&] { (void)tensor_of(item, {.dimensions = wrong}); });
    EXPECT_EQ(error.code(), "invalid_value");
    EXPECT_EQ(error.param(), "dimensions");
    EXPECT_THAT(error.what(), HasSubstr("expected 1 to 3, got " + std::to_string(wrong)));
  }
}

TEST(MakeTensors, SplitsTheDeepstackLevels) {
  const auto item = item_of(2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const std::vector<RowTensor> tensors = make_tensors(item, 2, {.deepstack = Deepstack::kSplit});
  ASSERT_EQ(tensors.size(), 3U);
  EXPECT_THAT(numbers_of(tensors[0]), ElementsAre(1, 2, 7, 8));
  EXPECT_THAT(numbers_of(tensors[1]), ElementsAre(3, 4, 9, 10));
  EXPECT_THAT(numbers_of(tensors[2]), ElementsAre(5, 6, 11, 12));
  const std::vector<RowTensor> pooled =
      make_tensors(item, 2, {.deepstack = Deepstack::kSplit, .pooling = Pooling::kMean});
  EXPECT_THAT(numbers_of(pooled[2]), ElementsAre(8, 9));
}

TEST(MakeTensors, LeavesTheDeepstackLevelsOut) {
  const auto item = item_of(2, {1, 2, 3, 4});
  const std::vector<RowTensor> tensors = make_tensors(item, 1, {.deepstack = Deepstack::kMain});
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_THAT(numbers_of(tensors[0]), ElementsAre(1, 3));
}

TEST(MakeTensors, TurnsTheBytesOfRowsItPicks) {
  const auto item = item_of(2, {1, 2, 3, 4}, RowDType::kBFloat16);
  const RowTensor tensor =
      make_tensors(
          item, 1,
          {.deepstack = Deepstack::kMain, .type = ElementType::kBFloat16, .order = ByteOrder::kBig})
          .front();
  EXPECT_EQ(to_base64(tensor.bytes.bytes), "P4BAQA==");
}

TEST(MakeTensors, RefusesNumbersThatAreNone) {
  for (const float wrong :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const auto item = item_of(1, {1, wrong});
    const ApiError error = refusal([&] { (void)make_tensors(item, 2, {}); });
    EXPECT_EQ(error.status(), 500);
    EXPECT_EQ(error.code(), "non_finite_output");
    EXPECT_EQ(error.param(), "items[0].image");
  }
}

TEST(MakeTensors, TakesAnItemWithoutRows) {
  const auto item = item_of(0, {});
  EXPECT_EQ(tensor_of(item, {}).shape, (Shape{0, 4}));
  EXPECT_TRUE(tensor_of(item, {.normalize = true}).bytes.bytes.empty());
  EXPECT_THAT(refusal([&] { (void)tensor_of(item, {.pooling = Pooling::kMean}); }).what(),
              HasSubstr("has no rows that could be pooled"));
}

TEST(MakeTensors, RefusesRowsOfAnotherTypeThanItAskedFor) {
  const auto item = item_of(1, {1, 2}, RowDType::kBFloat16);
  EXPECT_THROW((void)make_tensors(item, 2, {.normalize = true}), Error);
}

TEST(AppendJsonNumbers, NestsArraysInTheShape) {
  std::string text;
  append_json_numbers(tensor_of(item_of(2, {1, -2.5F, 0.1F, 1e-30F}), {}), text);
  EXPECT_EQ(text, "[[1,-2.5],[0.1,1e-30]]");
  text.clear();
  append_json_numbers(tensor_of(item_of(1, {1, 0}), {.pooling = Pooling::kMean}), text);
  EXPECT_EQ(text, "[1,0]");
  text.clear();
  append_json_numbers(tensor_of(item_of(0, {}), {}), text);
  EXPECT_EQ(text, "[]");
}

TEST(AppendJsonNumbers, WritesTheShortestTextThatReadsBack) {
  std::vector<float> numbers{std::numeric_limits<float>::max(), std::numeric_limits<float>::min(),
                             std::numeric_limits<float>::denorm_min(), -0.0F, 16777216.0F};
  for (int i = 0; i < 1000; ++i) numbers.push_back(std::sin(static_cast<float>(i)) / 7);
  std::string text;
  append_json_numbers(tensor_of(item_of(1, numbers), {.pooling = Pooling::kFirst}), text);
  std::size_t at = 1;
  for (const float number : numbers) {
    const std::size_t end = text.find_first_of(",]", at);
    const std::string one = text.substr(at, end - at);
    EXPECT_EQ(std::strtof(one.c_str(), nullptr), number) << one;
    EXPECT_LE(one.size(), 15U) << one;
    at = end + 1;
  }
}

}  // namespace
}  // namespace fovea::serve
