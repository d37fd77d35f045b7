// The whole way from pictures to rows against the reference's rows, for every golden folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "checkpoint/safetensors.h"
#include "fovea/fovea.h"
#include "support/golden.h"

namespace fovea {
namespace {

/// float32 arithmetic on both sides, sums in another order: the independent implementations of the
/// reference agree to 1e-5; a wrong activation variant shows at 3e-4.
constexpr double kTolerance = 1e-4;

std::vector<MediaItem> golden_items(const std::string& folder) {
  std::vector<MediaItem> items;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
    items.push_back(image_file(entry.path().string()));
  }
  std::ranges::sort(items, {}, &MediaItem::name);
  const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
  if (file.find("video.frames") != nullptr) {
    const ConstTensorView frames = file.tensor("video.frames");
    std::vector<std::uint8_t> rgb(frames.bytes());
    std::memcpy(rgb.data(), frames.data, rgb.size());
    items.push_back(
        video_rgb(std::move(rgb), frames.shape[0], frames.shape[2], frames.shape[1], 2.0, "video"));
  }
  return items;
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, RowsEqualTheReferenceAloneAndInABatch) {
  const std::vector<std::string> folders = test::golden_folders(GetParam(), "golden.safetensors");
  ASSERT_FALSE(folders.empty());
  for (const std::string& folder : folders) {
    SCOPED_TRACE(folder);
    Engine engine = Engine::load(folder, {.device = "cpu"});
    const std::vector<MediaItem> items = golden_items(folder);
    const std::vector<Embedding> batch = engine.encode(items);
    const std::vector<Embedding> eager = engine.encode(items, {.enforce_eager = true});
    ASSERT_EQ(batch.size(), items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      SCOPED_TRACE(items[i].name);
      const std::optional<double> difference = golden_difference(batch[i], folder);
      ASSERT_TRUE(difference.has_value());
      EXPECT_LE(*difference, kTolerance);
      const Embedding alone = engine.encode(std::span(&items[i], 1)).front();
      EXPECT_EQ(alone.data, batch[i].data) << "a row must not depend on what else is in the batch";
      EXPECT_EQ(eager[i].data, batch[i].data) << "replay must equal eager";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Golden, ::testing::Values("deepseek_ocr", "qwen3_vl"),
                         [](const auto& name) { return name.param; });

// Qwen3.5 shares the tower; its checkpoint is only in the full set.
TEST(GoldenFull, Qwen35RowsEqualTheReference) {
  for (const std::string& folder : test::golden_folders("qwen3_5", "golden.safetensors")) {
    Engine engine = Engine::load(folder, {.device = "cpu"});
    for (const Embedding& rows : engine.encode(golden_items(folder))) {
      const std::optional<double> difference = golden_difference(rows, folder);
      ASSERT_TRUE(difference.has_value()) << rows.name;
      EXPECT_LE(*difference, kTolerance) << rows.name;
    }
  }
}

// One thread and several give the same bits.
TEST(GoldenThreads, RowsDoNotDependOnTheNumberOfThreads) {
  const std::string folder = test::golden_folder("qwen3_vl", "golden.safetensors");
  const std::vector<MediaItem> items = golden_items(folder);
  Engine one = Engine::load(folder, {.device = "cpu", .num_threads = 1});
  Engine three = Engine::load(folder, {.device = "cpu", .num_threads = 3});
  const std::vector<Embedding> expected = one.encode(items);
  const std::vector<Embedding> got = three.encode(items);
  for (std::size_t i = 0; i < items.size(); ++i) EXPECT_EQ(got[i].data, expected[i].data);
}

}  // namespace
}  // namespace fovea
