// From images and videos to rows, compared with the rows of the reference, for every golden folder
// whose family the registry knows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "checkpoint/hf_config.h"
#include "checkpoint/safetensors.h"
#include "fovea/fovea.h"
#include "models/registry.h"
#include "support/golden.h"

namespace fovea {
namespace {

/// float32 arithmetic on both sides, sums in another order: the independent implementations of the
/// reference agree to 1e-5; a wrong activation variant shows at 3e-4.
constexpr double kTolerance = 1e-4;

constexpr const char* kGoldenFile = "golden.safetensors";

std::vector<MediaItem> golden_items(const std::string& folder) {
  std::vector<MediaItem> items;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
    items.push_back(image_file(entry.path().string()));
  }
  std::ranges::sort(items, {}, &MediaItem::name);
  const checkpoint::SafetensorsFile file(folder + "/" + kGoldenFile);
  if (file.find("video.frames") != nullptr) {
    const ConstTensorView frames = file.tensor("video.frames");
    std::vector<std::uint8_t> rgb(frames.bytes());
    std::memcpy(rgb.data(), frames.data, rgb.size());
    items.push_back(
        video_rgb(std::move(rgb), frames.shape[0], frames.shape[2], frames.shape[1], 2.0, "video"));
  }
  return items;
}

/// A way to run the items of a call, which must not show in their rows.
struct GoldenWay {
  const char* name;
  int replicas = 1;
  bool eager = false;
  PackingPolicy packing = PackingPolicy::kGreedy;
  bool reuse = true;
};

constexpr GoldenWay kGoldenWays[] = {
    {.name = "eager", .eager = true},
    {.name = "three replicas", .replicas = 3},
    {.name = "units", .packing = PackingPolicy::kUnits},
    {.name = "units, none reused", .packing = PackingPolicy::kUnits, .reuse = false},
    {.name = "units on three replicas", .replicas = 3, .packing = PackingPolicy::kUnits},
    {.name = "units on three replicas, none reused",
     .replicas = 3,
     .packing = PackingPolicy::kUnits,
     .reuse = false}};

/// Encodes the inputs of a golden folder and compares the rows with the reference's.
void expect_reference_rows(const std::string& folder) {
  SCOPED_TRACE(folder);
  Engine engine = Engine::load(folder, {.device = "cpu"});
  const std::vector<MediaItem> items = golden_items(folder);
  const std::vector<Embedding> batch = engine.encode(items);
  ASSERT_EQ(batch.size(), items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    SCOPED_TRACE(items[i].name);
    const std::optional<double> difference = golden_difference(batch[i], folder);
    ASSERT_TRUE(difference.has_value());
    EXPECT_LE(*difference, kTolerance);
    const Embedding alone = engine.encode(std::span(&items[i], 1)).front();
    EXPECT_EQ(alone.data, batch[i].data) << "a row must not depend on what else is in the batch";
  }
}

/// Compares the rows of the inputs of a golden folder with those of every other way to run them.
void expect_same_rows_in_every_way(const std::string& folder) {
  SCOPED_TRACE(folder);
  Engine engine = Engine::load(folder, {.device = "cpu"});
  const std::vector<MediaItem> items = golden_items(folder);
  const std::vector<Embedding> batch = engine.encode(items);
  for (const GoldenWay& way : kGoldenWays) {
    SCOPED_TRACE(way.name);
    Engine other = Engine::load(folder, {.device = "cpu",
                                         .data_parallel_size = way.replicas,
                                         .num_threads = way.replicas,
                                         .packing = way.packing,
                                         .reuse_units = way.reuse});
    const bool may_reuse = way.packing == PackingPolicy::kUnits && way.reuse;
    std::vector<MediaItem> media = items;
    if (may_reuse) media.insert(media.end(), items.begin(), items.end());
    const std::vector<Embedding> rows = other.encode(media, {.enforce_eager = way.eager});
    ASSERT_EQ(rows.size(), media.size());
    for (std::size_t i = 0; i < media.size(); ++i) {
      EXPECT_EQ(rows[i].data, batch[i % items.size()].data) << media[i].name;
    }
    if (way.replicas == 1) {
      EXPECT_EQ(other.stats().units_reused > 0, may_reuse);
    }
  }
}

/// Folders with reference data in the repository.
std::vector<std::string> repository_families() {
  return test::golden_families(FOVEA_TEST_GOLDEN_DIR, kGoldenFile);
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, RowsEqualTheReferenceAloneAndInABatch) {
  for (const std::string& folder : test::golden_folders(GetParam(), kGoldenFile))
    expect_reference_rows(folder);
}

TEST_P(Golden, RowsAreTheSameBitsInEveryWayToRunThem) {
  expect_same_rows_in_every_way(test::golden_folder(GetParam(), kGoldenFile));
}

INSTANTIATE_TEST_SUITE_P(Families, Golden, ::testing::ValuesIn(repository_families()),
                         [](const auto& name) { return name.param; });

/// Whether a family computes the towers of this architecture.
bool is_supported(const std::string& architecture) {
  return std::ranges::any_of(model_families(), [&](const ModelFamily* family) {
    return std::ranges::find(family->architectures, architecture) != family->architectures.end();
  });
}

/// Folders with reference data of architectures that a family computes and that are in no folder of
/// the repository; none where FOVEA_GOLDEN_DIR is not set.
std::vector<std::string> outside_folders() {
  const std::vector<std::string> roots = test::golden_roots();
  const std::vector<std::string> tested = repository_families();
  std::vector<std::string> folders;
  if (roots.size() < 2) return folders;
  for (const std::string& family : test::golden_families(roots.back(), kGoldenFile)) {
    const std::string folder = roots.back() + "/" + family;
    const std::string architecture = checkpoint::read_hf_config(folder).architectures().front();
    if (!std::ranges::binary_search(tested, family) && is_supported(architecture))
      folders.push_back(folder);
  }
  return folders;
}

constexpr const char* kNoFolders =
    "FOVEA_GOLDEN_DIR names no folder with reference data of families outside of the repository";

TEST(GoldenFull, RowsOfSupportedFamiliesOutsideTheRepositoryEqualTheReference) {
  const std::vector<std::string> folders = outside_folders();
  if (folders.empty()) GTEST_SKIP() << kNoFolders;
  for (const std::string& folder : folders) expect_reference_rows(folder);
}

TEST(GoldenFull, RowsOfFamiliesOutsideTheRepositoryAreTheSameBitsInEveryWayToRunThem) {
  const std::vector<std::string> folders = outside_folders();
  if (folders.empty()) GTEST_SKIP() << kNoFolders;
  for (const std::string& folder : folders) expect_same_rows_in_every_way(folder);
}

// One thread and several give the same bits.
TEST(GoldenThreads, RowsDoNotDependOnTheNumberOfThreads) {
  const std::string folder = test::golden_folder("qwen3_vl", kGoldenFile);
  const std::vector<MediaItem> items = golden_items(folder);
  Engine one = Engine::load(folder, {.device = "cpu", .num_threads = 1});
  Engine three = Engine::load(folder, {.device = "cpu", .num_threads = 3});
  const std::vector<Embedding> expected = one.encode(items);
  const std::vector<Embedding> got = three.encode(items);
  for (std::size_t i = 0; i < items.size(); ++i) EXPECT_EQ(got[i].data, expected[i].data);
}

}  // namespace
}  // namespace fovea
