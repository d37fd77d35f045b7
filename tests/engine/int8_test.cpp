// Towers in integers of 8 bits: for the golden checkpoint of every family, rows that are close to
// the reference's, and the same bits however they are computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

constexpr const char* kGoldenFile = "golden.safetensors";
/// Largest relative difference that a few blocks of 8 bits were seen to make, 0.039, and a
/// little room for another compiler's float32.
constexpr double kTolerance = 0.05;
/// What float32 keeps below: rows that are closer were not quantized.
constexpr double kFloat32Tolerance = 1e-4;

Engine load(const std::string& folder, int threads) {
  return Engine::load(
      folder, {.device = "cpu", .num_threads = threads, .quantization = Quantization::kInt8});
}

std::vector<MediaItem> golden_images(const std::string& folder) {
  std::vector<MediaItem> items;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
    items.push_back(image_file(entry.path().string()));
  }
  std::ranges::sort(items, {}, &MediaItem::name);
  return items;
}

class Int8Tower : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Families, Int8Tower,
                         ::testing::ValuesIn(test::golden_families(FOVEA_TEST_GOLDEN_DIR,
                                                                   kGoldenFile)),
                         [](const auto& suite) { return suite.param; });

TEST_P(Int8Tower, IsCloseToTheReferenceAndHasTheSameBitsHoweverItRuns) {
  const std::string folder = test::golden_folder(GetParam(), kGoldenFile);
  Engine engine = load(folder, 1);
  Engine threads = load(folder, 3);
  const std::vector<MediaItem> items = golden_images(folder);
  const std::vector<Embedding> batch = engine.encode(items);
  const std::vector<Embedding> eager = engine.encode(items, {.enforce_eager = true});
  const std::vector<Embedding> spread = threads.encode(items);
  for (std::size_t i = 0; i < items.size(); ++i) {
    SCOPED_TRACE(items[i].name);
    const std::optional<double> difference = golden_difference(batch[i], folder);
    ASSERT_TRUE(difference.has_value());
    EXPECT_LE(*difference, kTolerance);
    EXPECT_GE(*difference, kFloat32Tolerance);
    EXPECT_EQ(eager[i].data, batch[i].data) << "a replay must give what an eager run gives";
    EXPECT_EQ(spread[i].data, batch[i].data) << "the number of threads must not matter";
    const Embedding alone = engine.encode(std::span(&items[i], 1)).front();
    EXPECT_EQ(alone.data, batch[i].data) << "a row must not depend on what else is in the batch";
  }
}

TEST(Int8, VerifySaysHowFarEveryLevelIsFromFloat32) {
  Engine engine = load(test::golden_folder("qwen3_vl", kGoldenFile), 2);
  std::vector<std::string> names;
  for (const Check& check : verify(engine, "")) {
    EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
    if (!check.name.starts_with("quantized")) continue;
    names.push_back(check.name);
    EXPECT_NE(check.detail.find("against float32"), std::string::npos) << check.detail;
  }
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.front(), "quantized rows");
  EXPECT_EQ(names.back(), "quantized deepstack level " + std::to_string(names.size() - 2));
}

TEST(Int8, Fp8OnACpuIsRefused) {
  test::expect_error(ErrorCode::kUnsupported, "compute capability 9.0 (Hopper), not the CPU", [] {
    (void)Engine::load(test::golden_folder("qwen3_vl", kGoldenFile),
                       {.device = "cpu", .quantization = Quantization::kFp8});
  });
}

}  // namespace
}  // namespace fovea
