// What is said about quantized rows.
#include "engine/diagnostics/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace fovea {
namespace {

constexpr std::int64_t kHidden = 2;

/// One row of a main embedding and one deepstack level.
std::vector<Embedding> rows(const std::vector<float>& values) {
  Embedding item;
  item.rows = 1;
  item.width = 2 * kHidden;
  item.data.resize(values.size() * sizeof(float));
  std::memcpy(item.data.data(), values.data(), item.data.size());
  std::vector<Embedding> items;
  items.push_back(std::move(item));
  return items;
}

TEST(CheckQuantization, SaysHowFarEveryLevelIsFromEveryReference) {
  const auto quantized = rows({3, 4, 1, 0});
  const auto bfloat16 = rows({3, 4, 0, 2});
  const auto float32 = rows({6, 8, 2, 0});
  const ReferenceRows references[] = {{"bfloat16", bfloat16}, {"float32", float32}};
  const auto checks = check_quantization("quantized", quantized, references, kHidden, 0.2);
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].name, "quantized rows");
  EXPECT_EQ(checks[0].detail,
            "relative difference 0, cosine 1 against bfloat16; "
            "relative difference 0.5, cosine 1 against float32; allowed 0.2");
  EXPECT_FALSE(checks[0].passed);
  EXPECT_EQ(checks[1].name, "quantized deepstack level 0");
  EXPECT_THAT(checks[1].detail, ::testing::HasSubstr("cosine 0 against bfloat16"));
}

TEST(CheckQuantization, PassesWithinTheToleranceOfAll) {
  const auto quantized = rows({1, 1, 1, 1});
  const auto close = rows({1.1f, 1.1f, 0.9f, 1});
  const auto far = rows({1, 1, 1, 3});
  const auto passed = [&](const auto& first, const auto& second) {
    const ReferenceRows references[] = {{"first", first}, {"second", second}};
    return check_quantization("quantized", quantized, references, kHidden, 0.2)[1].passed;
  };
  EXPECT_TRUE(passed(close, close));
  EXPECT_FALSE(passed(far, close));
  EXPECT_FALSE(passed(close, far));
}

}  // namespace
}  // namespace fovea
