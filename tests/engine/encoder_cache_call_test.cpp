// Which memory of the encoder cache a call finds rows in, when it goes past the cache, and what it
// takes for the same item.
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/cached/cached_calls.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using test::noise;

TEST(EncoderCacheCall, RowsGoToTheHostAndComeBack) {
  constexpr std::int64_t kTwoItems = 2 * 4096;
  Engine engine = load_with_cache({kTwoItems, 2 * kTwoItems});
  std::vector<MediaItem> items;
  for (unsigned seed = 0; seed < 4; ++seed) items.push_back(noise(64, 64, seed));
  const std::vector<Embedding> expected = engine.encode(items, {.use_cache = false});
  ASSERT_EQ(expected[0].data.size(), kTwoItems / 2);
  for (int call = 0; call < 3; ++call) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      expect_same_items(engine.encode({&items[i], 1}), {&expected[i], 1});
    }
  }
  const EncoderCacheStats stats = engine.stats().encoder_cache;
  EXPECT_EQ(stats.misses, 4);
  EXPECT_EQ(stats.host.hits, 8);
  EXPECT_EQ(stats.device.evictions, 10);
  EXPECT_EQ(stats.evictions, 0);
}

TEST(EncoderCacheCall, CountsNothingWithoutACache) {
  Engine engine = load_with_cache(Memory{});
  const std::vector<MediaItem> items(3, noise(64, 64, 1));
  const std::vector<Embedding> rows = engine.encode(items);
  EXPECT_EQ(encoded(engine), 3);
  EXPECT_EQ(engine.stats().encoder_cache.queries, 0);
  expect_same_items(load_with_cache(kHost).encode(items), rows);
}

TEST(EncoderCacheCall, MayDoWithoutTheCache) {
  Engine engine = load_with_cache(kHost);
  const std::vector<MediaItem> items(2, noise(64, 64, 1));
  (void)engine.encode(items, {.use_cache = false});
  (void)engine.encode(items, {.enforce_eager = true});
  EXPECT_EQ(encoded(engine), 4);
  EXPECT_EQ(engine.stats().encoder_cache.queries, 0);
}

TEST(EncoderCacheCall, TellsVideosOfAnotherRateApart) {
  Engine engine = load_with_cache(kHost);
  std::vector<MediaItem> items;
  for (const double fps : {2.0, 4.0}) {
    items.push_back(video_rgb(std::vector<std::uint8_t>(std::size_t{4} * 64 * 64 * 3, 9), 4, 64, 64,
                              fps, "video"));
  }
  const std::vector<Embedding> rows = engine.encode(items);
  EXPECT_EQ(engine.stats().encoder_cache.misses, 2);
  EXPECT_NE(rows[0].timestamps, rows[1].timestamps);
}

TEST(EncoderCacheCall, NeedsASizeThatIsNotNegative) {
  test::expect_error(ErrorCode::kInvalidArgument, "got -1", [] { (void)load_with_cache({-1, 0}); });
}

TEST(EncoderCacheCall, NamesAFileThatIsNotThere) {
  Engine engine = load_with_cache(kHost);
  const std::vector<MediaItem> items{image_file("/nowhere.png"), noise(64, 64, 1)};
  const std::vector<Embedding> rows = engine.encode(items, {.on_error = OnError::kSkip});
  ASSERT_TRUE(rows[0].error);
  EXPECT_EQ(rows[0].error->code(), ErrorCode::kNotFound);
  EXPECT_EQ(engine.stats().encoder_cache.queries, 1);
}

TEST(EncoderCacheCall, ReadsAFileThatWasReplacedAnew) {
  const test::TemporaryDirectory folder;
  const fs::path path = folder / "image";
  Engine engine = load_with_cache(kHost);
  const std::vector<MediaItem> items{image_file(path)};
  fs::copy_file(image_path(), path);
  const RowBytes first = engine.encode(items).front().data;
  fs::copy_file(other_path(), path, fs::copy_options::overwrite_existing);
  const RowBytes second = engine.encode(items).front().data;
  EXPECT_NE(first, second);
  EXPECT_EQ(second, engine.encode(items, {.use_cache = false}).front().data);
}

}  // namespace
}  // namespace fovea
