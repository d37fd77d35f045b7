// Means, deviations and factors of processor files, and the text about what files leave open.
#include "models/common/processor_file.h"

#include <gtest/gtest.h>

#include "core/check.h"

#include "support/expect_error.h"

namespace fovea::common {
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

TEST(ReadScaling, TakesWhatTheFileSays) {
  const JsonDocument document = parse(R"({"image_std": [1, 2, 3], "rescale_factor": 0.5})");
  const PixelScaling fallback{.image_mean = kFallback};
  const PixelScaling scaling = read_scaling(document.root(), fallback);
  EXPECT_EQ(scaling.image_mean, kFallback);
  EXPECT_EQ(scaling.image_std, (Channels{1, 2, 3}));
  EXPECT_EQ(scaling.rescale_factor, 0.5);
  EXPECT_EQ(read_scaling(parse("{}").root(), fallback), fallback);
}

TEST(ReadScaling, RefusesStepsThatAreSwitchedOff) {
  for (const std::string step : {"do_resize", "do_rescale", "do_normalize"}) {
    const JsonDocument document = parse("{\"" + step + "\": false}");
    test::expect_error(ErrorCode::kUnsupported, step + ": false is not supported",
                       [&] { (void)read_scaling(document.root(), {}); });
  }
}

TEST(CheckSize, TakesTheSizeOfTheTowerInAllSpellings) {
  for (const char* text : {"{}", R"({"size": 448})", R"({"size": {"height": 448}})",
                           R"({"size": {"height": 448, "width": 448}})"}) {
    const JsonDocument document = parse(text);
    EXPECT_NO_THROW(check_size(document.root(), 448)) << text;
  }
  const JsonDocument document = parse(R"({"size": {"height": 448, "width": 384}})");
  test::expect_error(ErrorCode::kUnsupported,
                     "size.width: 384 contradicts config.json, which says 448",
                     [&] { check_size(document.root(), 448); });
}

TEST(ResizeEngine, IsTheOneThatTheUserAsksFor) {
  using media::ResizeEngine;
  MediaOptions options;
  EXPECT_EQ(resize_engine(options, ResizeEngine::kPillow), ResizeEngine::kPillow);
  options.image_backend = ImageBackend::kTorchvision;
  EXPECT_EQ(resize_engine(options, ResizeEngine::kPillow), ResizeEngine::kTorchvision);
  options.image_backend = ImageBackend::kPillow;
  EXPECT_EQ(resize_engine(options, ResizeEngine::kTorchvision), ResizeEngine::kPillow);
}

TEST(Assumed, OfAKeyThatTheFileHasNothingIs) {
  const JsonDocument document = parse(R"({"max_patches": 4})");
  EXPECT_TRUE(assumed(document.root(), "max_patches", "16").given);
  EXPECT_FALSE(assumed(document.root(), "image_mean", "1").given);
  const Assumption without_file = assumed(std::nullopt, "max_patches", "16");
  EXPECT_FALSE(without_file.given);
  EXPECT_EQ(without_file.assumed, "max_patches=16");
}

}  // namespace
}  // namespace fovea::common
