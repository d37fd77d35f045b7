// Means, deviations and factors of processor files, and the text about what files leave open.
#include "models/blocks/processor_file.h"

#include <gtest/gtest.h>

#include "core/check.h"

#include "support/expect_error.h"

namespace fovea::blocks {
namespace {

using Channels = std::array<float, 3>;

constexpr Channels kFallback{7, 8, 9};

JsonDocument parse(const std::string& text) {
  return JsonDocument::parse(text, "preprocessor_config.json");
}

template <class Read>
void expect_refused(const std::string& text, const std::string& message, const Read& read) {
  const JsonDocument document = parse(text);
  test::expect_error(ErrorCode::kCorruptData, "preprocessor_config.json: " + message,
                     [&] { read(document.root()); });
}

TEST(ReadChannels, TakesThreeNumbersOrTheFallback) {
  const JsonDocument document = parse(R"({"image_mean": [0, -0.25, 1], "image_std": [1, 2, 3]})");
  const JsonView root = document.root();
  EXPECT_EQ(read_channels(root, "image_mean", kFallback), (Channels{0, -0.25f, 1}));
  EXPECT_EQ(read_channels(root, "absent", kFallback), kFallback);
  EXPECT_EQ(read_positive_channels(root, "image_std", kFallback), (Channels{1, 2, 3}));
  EXPECT_EQ(read_positive_channels(root, "absent", kFallback), kFallback);
}

TEST(ReadChannels, RefusesListsOfAnotherLength) {
  const auto read = [](const JsonView& root) {
    (void)read_channels(root, "image_mean", kFallback);
  };
  expect_refused(R"({"image_mean": [0.5]})", "image_mean: expected 3 numbers, got 1", read);
  expect_refused(R"({"image_mean": [1, 1, 1, 1]})", "image_mean: expected 3 numbers, got 4", read);
}

TEST(ReadChannels, RefusesNumbersThatF32CannotHold) {
  expect_refused(R"({"image_mean": [0, 0, 1e300]})",
                 "image_mean[2]: expected a number that f32 holds, got 1e+300",
                 [](const JsonView& root) { (void)read_channels(root, "image_mean", kFallback); });
}

TEST(ReadPositive, RefusesDivisorsAndFactorsThatAreNotAboveZero) {
  const auto deviations = [](const JsonView& root) {
    (void)read_positive_channels(root, "image_std", kFallback);
  };
  expect_refused(R"({"image_std": [0.5, 0, 0.5]})", "image_std: expected 3 numbers above 0, got 0",
                 deviations);
  expect_refused(R"({"image_std": [0.5, 0.5, 1e-40]})", "image_std: expected 3 numbers above 0",
                 deviations);
  const auto factor = [](const JsonView& root) { (void)read_positive(root, "rescale_factor", 1); };
  expect_refused(R"({"rescale_factor": 0})", "rescale_factor: expected a number above 0, got 0",
                 factor);
  expect_refused(R"({"rescale_factor": -1})", "rescale_factor: expected a number above 0, got -1",
                 factor);
}

TEST(ReadPositive, TakesANumberOrTheFallback) {
  const JsonDocument document = parse(R"({"rescale_factor": 0.25})");
  EXPECT_EQ(read_positive(document.root(), "rescale_factor", 1), 0.25);
  EXPECT_EQ(read_positive(document.root(), "absent", 3), 3);
}

TEST(MissingText, ListsTheKeysThatAreNotGivenAndWhatStandsInForThem) {
  const std::initializer_list<Assumption> assumptions{
      {false, "size", "pixels=1..2"},
      {true, "image_mean", "image_mean=0,0,0"},
      {false, "image_std", cat("image_std=", channel_text({0.5f, 1, 0.25f}))}};
  EXPECT_EQ(missing_text("a.json", true, assumptions),
            "missing=a.json keys=size,image_std pixels=1..2 image_std=0.5,1,0.25");
  EXPECT_EQ(missing_text("a.json", false, assumptions),
            "missing=a.json pixels=1..2 image_std=0.5,1,0.25");
}

TEST(MissingText, IsEmptyIfAllIsGiven) {
  EXPECT_EQ(missing_text("a.json", true, {{true, "size", "pixels=1..2"}}), "");
}

}  // namespace
}  // namespace fovea::blocks
