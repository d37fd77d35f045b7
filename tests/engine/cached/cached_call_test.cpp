// Equal items are encoded once, and their rows are those of a call without a cache.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/cached/noise.h"
#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using test::load_cached;
using test::noise;

constexpr std::int64_t kAmple = std::int64_t{64} << 20;

std::vector<std::uint8_t> bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

fs::path image_path() {
  return fs::path(FOVEA_TEST_GOLDEN_DIR) / "qwen3_vl/images/photo_180x180.jpg";
}

void expect_same(const Embedding& got, const Embedding& expected) {
  EXPECT_EQ(got.data, expected.data);
  EXPECT_EQ(got.rows, expected.rows);
  EXPECT_EQ(got.width, expected.width);
  EXPECT_EQ(got.dtype, expected.dtype);
  EXPECT_EQ(got.name, expected.name);
  EXPECT_EQ(got.modality, expected.modality);
  EXPECT_EQ(got.grid_thw, expected.grid_thw);
  EXPECT_EQ(got.retained, expected.retained);
  EXPECT_EQ(got.timestamps, expected.timestamps);
  EXPECT_EQ(got.num_frames, expected.num_frames);
  EXPECT_EQ(got.source_width_px, expected.source_width_px);
  EXPECT_EQ(got.resized_height_px, expected.resized_height_px);
}

void expect_same(std::span<const Embedding> got, std::span<const Embedding> expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) expect_same(got[i], expected[i]);
}

std::int64_t encoded(const Engine& engine) {
  const Stats stats = engine.stats();
  return stats.graph_hits + stats.graph_partial + stats.graph_misses;
}

TEST(CachedCall, EncodesAnImageThatComesThreeTimesOnce) {
  Engine engine = load_cached(kAmple);
  const std::vector<MediaItem> items{image_file(image_path()),
                                     image_bytes(bytes_of(image_path()), "in memory"),
                                     image_file(image_path())};
  expect_same(engine.encode(items), engine.encode(items, {.use_cache = false}));
  EXPECT_EQ(encoded(engine), 4);
  const EncoderCacheStats stats = engine.stats().encoder_cache;
  EXPECT_EQ(stats.misses, 1);
  EXPECT_EQ(stats.hits, 2);
  EXPECT_EQ(stats.queries, 3);
  EXPECT_EQ(engine.stats().skipped, 2);
}

TEST(CachedCall, TellsWhereTheRowsOfEachItemComeFrom) {
  Engine engine = load_cached(kAmple);
  const std::vector<MediaItem> items{noise(64, 96, 1), noise(96, 64, 2), noise(64, 96, 1)};
  const std::vector<Embedding> first = engine.encode(items);
  EXPECT_EQ(first[0].cache, CacheUse::kMiss);
  EXPECT_EQ(first[0].graph, GraphUse::kHit);
  EXPECT_EQ(first[2].cache, CacheUse::kHit) << "as the first";
  EXPECT_EQ(first[2].graph, GraphUse::kNone);
  for (const Embedding& again : engine.encode(items)) {
    EXPECT_EQ(again.cache, CacheUse::kHit);
    EXPECT_EQ(again.graph, GraphUse::kNone);
  }
  const std::vector<Embedding> past = engine.encode(items, {.enforce_eager = true});
  EXPECT_EQ(past[0].cache, CacheUse::kNotAsked);
  EXPECT_EQ(past[0].graph, GraphUse::kMiss);
}

TEST(CachedCall, TellsWhatIsNotKept) {
  Engine engine = load_cached(1);  // room for no row
  EXPECT_EQ(engine.encode(std::vector{noise(64, 96, 1)})[0].cache, CacheUse::kBypass);
  const std::vector<Embedding> failed =
      engine.encode(std::vector{image_bytes({1, 2, 3}, "broken"), image_bytes({1, 2, 3}, "too")},
                    {.on_error = OnError::kSkip});
  EXPECT_EQ(failed[0].graph, GraphUse::kNone);
  EXPECT_TRUE(failed[1].error);
}

TEST(CachedCall, EncodesAnImageOfTwoCallsOnce) {
  Engine engine = load_cached(kAmple);
  const std::vector<MediaItem> first{noise(64, 96, 1), noise(96, 64, 2)};
  const std::vector<MediaItem> second{noise(96, 64, 2), noise(40, 40, 3), noise(64, 96, 1)};
  const std::vector<Embedding> expected = engine.encode(second, {.use_cache = false});
  (void)engine.encode(first);
  const std::int64_t before = encoded(engine);
  expect_same(engine.encode(second), expected);
  EXPECT_EQ(encoded(engine) - before, 1);
  EXPECT_EQ(engine.stats().encoder_cache.hits, 2);
}

TEST(CachedCall, NamesRowsByWhatTheyDependOn) {
  Engine engine = load_cached(kAmple);
  const std::vector<MediaItem> items{image_file(image_path()), noise(64, 96, 1),
                                     image_bytes(bytes_of(image_path()), "again")};
  for (int call = 0; call < 2; ++call) {  // encoded, and from the cache
    const std::vector<Embedding> rows = engine.encode(items);
    EXPECT_EQ(rows[0].key.size(), 64u);
    EXPECT_EQ(rows[2].key, rows[0].key);
    EXPECT_NE(rows[1].key, rows[0].key);
  }
  EXPECT_EQ(engine.encode(items, {.use_cache = false})[0].key, "");
}

TEST(CachedCall, CountsNothingWithoutACache) {
  Engine engine = load_cached(0);
  const std::vector<MediaItem> items(3, noise(64, 64, 1));
  const std::vector<Embedding> rows = engine.encode(items);
  EXPECT_EQ(encoded(engine), 3);
  EXPECT_EQ(engine.stats().encoder_cache.queries, 0);
  Engine cached = load_cached(kAmple);
  expect_same(cached.encode(items), rows);
}

TEST(CachedCall, CallsMayDoWithoutTheCache) {
  Engine engine = load_cached(kAmple);
  const std::vector<MediaItem> items(2, noise(64, 64, 1));
  (void)engine.encode(items, {.use_cache = false});
  (void)engine.encode(items, {.enforce_eager = true});
  EXPECT_EQ(encoded(engine), 4);
  EXPECT_EQ(engine.stats().encoder_cache.queries, 0);
}

TEST(CachedCall, TellsVideosOfAnotherRateAndOtherDtypesApart) {
  Engine engine = load_cached(kAmple);
  std::vector<MediaItem> items;
  for (const double fps : {2.0, 4.0}) {
    items.push_back(video_rgb(std::vector<std::uint8_t>(std::size_t{4} * 64 * 64 * 3, 9), 4, 64, 64,
                              fps, "video"));
  }
  const std::vector<Embedding> rows = engine.encode(items);
  EXPECT_EQ(engine.stats().encoder_cache.misses, 2);
  EXPECT_NE(rows[0].timestamps, rows[1].timestamps);
  expect_same(engine.encode(items, {.dtype = RowDType::kBFloat16}),
              engine.encode(items, {.dtype = RowDType::kBFloat16, .use_cache = false}));
  EXPECT_EQ(engine.stats().encoder_cache.misses, 4);
}

TEST(CachedCall, HasNoRoomForAnItemLargerThanTheCache) {
  Engine engine = load_cached(1000);
  const std::vector<MediaItem> items(2, noise(64, 64, 1));
  const std::vector<Embedding> expected = engine.encode(items, {.use_cache = false});
  expect_same(engine.encode(items), expected);
  const EncoderCacheStats stats = engine.stats().encoder_cache;
  EXPECT_EQ(stats.bypasses, 1);
  EXPECT_EQ(stats.items, 0);
  EXPECT_EQ(stats.bytes, 0);
}

TEST(CachedCall, CountsRowsAsLargeAsFloat32) {
  const std::string model = test::golden_folder("qwen3_vl", "golden.safetensors");
  Engine engine = Engine::load(model, {.device = "cpu", .num_threads = 1, .encoder_cache_size = 8});
  EXPECT_EQ(engine.stats().encoder_cache.capacity_bytes, 8 * engine.report().width * 4);
  test::expect_error(ErrorCode::kInvalidArgument, "got 1 and 1", [&] {
    (void)Engine::load(model, {.device = "cpu", .encoder_cache_size = 1, .encoder_cache_bytes = 1});
  });
}

TEST(CachedCall, NeverKeepsAnItemThatFails) {
  Engine engine = load_cached(kAmple);
  std::vector<std::uint8_t> broken = bytes_of(image_path());
  broken.resize(broken.size() / 2);
  const std::vector<MediaItem> items{image_bytes(broken, "a"), noise(64, 64, 1),
                                     image_bytes(broken, "b")};
  for (int call = 1; call <= 2; ++call) {
    const std::vector<Embedding> rows = engine.encode(items, {.on_error = OnError::kSkip});
    ASSERT_TRUE(rows[0].error && rows[2].error);
    EXPECT_TRUE(std::string(rows[0].error->what()).starts_with("a: "));
    EXPECT_EQ(std::string(rows[2].error->what()).substr(1),
              std::string(rows[0].error->what()).substr(1));
    EXPECT_TRUE(std::string(rows[2].error->what()).starts_with("b: "));
    EXPECT_FALSE(rows[1].error);
    EXPECT_EQ(engine.stats().encoder_cache.misses, 1 + call);
    EXPECT_EQ(engine.stats().encoder_cache.items, 1);
  }
  test::expect_error(ErrorCode::kCorruptData, "a: ", [&] { (void)engine.encode(items); });
}

TEST(CachedCall, NamesAFileThatIsNotThere) {
  Engine engine = load_cached(kAmple);
  const std::vector<MediaItem> items{image_file("/nowhere.png"), noise(64, 64, 1)};
  const std::vector<Embedding> rows = engine.encode(items, {.on_error = OnError::kSkip});
  ASSERT_TRUE(rows[0].error);
  EXPECT_EQ(rows[0].error->code(), ErrorCode::kNotFound);
  EXPECT_EQ(engine.stats().encoder_cache.queries, 1);
}

TEST(CachedCall, ReadsAFileThatWasReplacedAnew) {
  const test::TemporaryDirectory folder;
  const fs::path path = folder / "image";
  const fs::path other = image_path().parent_path() / "noise_101x61.png";
  Engine engine = load_cached(kAmple);
  const std::vector<MediaItem> items{image_file(path)};
  fs::copy_file(image_path(), path);
  const RowBytes first = engine.encode(items).front().data;
  fs::copy_file(other, path, fs::copy_options::overwrite_existing);
  const RowBytes second = engine.encode(items).front().data;
  EXPECT_NE(first, second);
  EXPECT_EQ(second, engine.encode(items, {.use_cache = false}).front().data);
}

TEST(CachedCall, KeepsNothingOfAFileThatChangesMeanwhile) {
  const test::TemporaryDirectory folder;
  const std::string path = folder / "image";
  const fs::path other = image_path().parent_path() / "noise_101x61.png";
  fs::copy_file(image_path(), path);
  Engine engine = load_cached(kAmple);
  std::vector<MediaItem> items;
  for (unsigned seed = 0; seed < 70; ++seed) items.push_back(noise(32, 32, seed));
  items.push_back(image_file(path));  // the largest is the last to be read
  const auto replace = [&](std::int64_t, std::int64_t) {
    fs::copy_file(other, path, fs::copy_options::overwrite_existing);
  };
  const Embedding changed = std::move(engine.encode(items, {.progress = replace}).back());
  EXPECT_EQ(changed.source_width_px, 101);
  const std::vector<MediaItem> before{image_file(image_path())};
  EXPECT_EQ(engine.encode(before).front().source_width_px, 180);
}

TEST(CachedCall, KeepsPrunedVideosAsTheyArePruned) {
  Engine engine = load_cached(kAmple, 0.5);
  std::vector<MediaItem> items(
      1, video_path(std::string(FOVEA_TEST_GOLDEN_DIR) + "/qwen3_vl/video_frames"));
  items.push_back(noise(64, 64, 1));
  items.push_back(items.front());
  const std::vector<Embedding> expected = engine.encode(items, {.use_cache = false});
  expect_same(engine.encode(items), expected);
  expect_same(engine.encode(items), expected);
  EXPECT_TRUE(expected[2].retained);
  EXPECT_EQ(engine.stats().encoder_cache.hits, 4);
}

TEST(CachedCall, TellsItsProgressToTheEnd) {
  Engine engine = load_cached(kAmple);
  std::vector<MediaItem> items(3, noise(64, 64, 1));
  for (int call = 0; call < 2; ++call) {
    std::int64_t last = 0;
    (void)engine.encode(items, {.progress = [&](std::int64_t done, std::int64_t total) {
                          EXPECT_GT(done, last);
                          EXPECT_EQ(total, 3);
                          last = done;
                        }});
    EXPECT_EQ(last, 3);
  }
}

class CachedFamily : public ::testing::TestWithParam<std::string> {};

TEST_P(CachedFamily, HasTheRowsOfACallWithoutACache) {
  const fs::path folder = GetParam();
  Engine engine =
      Engine::load(folder, {.device = "cpu", .num_threads = 2, .encoder_cache_bytes = kAmple});
  std::vector<MediaItem> items;
  for (const std::string& image : images_in((folder / "images").string())) {
    items.push_back(image_file(image));
  }
  if (engine.report().videos && fs::exists(folder / "video_frames")) {
    items.push_back(video_path((folder / "video_frames").string()));
  }
  const std::vector<Embedding> expected = engine.encode(items, {.use_cache = false});
  const std::int64_t once = encoded(engine);
  expect_same(engine.encode(items), expected);
  expect_same(engine.encode(items), expected);
  EXPECT_EQ(encoded(engine), 2 * once);
}

std::vector<std::string> models_with_images() {
  std::vector<std::string> models;
  for (const std::string& model : test::golden_models()) {
    if (fs::exists(fs::path(model) / "images")) models.push_back(model);
  }
  return models;
}

INSTANTIATE_TEST_SUITE_P(All, CachedFamily, ::testing::ValuesIn(models_with_images()),
                         [](const auto& model) {
                           return fs::path(model.param).filename().string();
                         });

}  // namespace
}  // namespace fovea
