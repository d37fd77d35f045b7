// Equal items are encoded once, and their rows are those of a call without a cache, whichever
// memory they stay in.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "core/check.h"
#include "engine/cached/cached_calls.h"
#include "engine/rows/host_room.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using test::noise;

class CachedCall : public ::testing::TestWithParam<Memory> {
 protected:
  [[nodiscard]] static Engine load_ample(const EngineOptions& options = {}) {
    return load_with_cache(GetParam(), options);
  }
  /// Where no row fits in.
  [[nodiscard]] static Memory tiny() {
    return {std::min<std::int64_t>(GetParam().device_bytes, 1000),
            std::min<std::int64_t>(GetParam().host_bytes, 1000)};
  }
};

INSTANTIATE_TEST_SUITE_P(In, CachedCall, ::testing::Values(kHost, kDevice),
                         [](const auto& memory) { return name_of(memory.param); });

TEST_P(CachedCall, EncodesAnImageThatComesThreeTimesOnce) {
  Engine engine = load_ample();
  const std::vector<MediaItem> items{image_file(image_path()),
                                     image_bytes(bytes_of(image_path()), "in memory"),
                                     image_file(image_path())};
  expect_same_items(engine.encode(items), engine.encode(items, {.use_cache = false}));
  EXPECT_EQ(encoded(engine), 4);
  const EncoderCacheStats stats = engine.stats().encoder_cache;
  EXPECT_EQ(stats.misses, 1);
  EXPECT_EQ(stats.hits, 2);
  EXPECT_EQ(stats.queries, 3);
  EXPECT_EQ(engine.stats().skipped, 2);
}

TEST_P(CachedCall, EncodesAnImageOfTwoCallsOnce) {
  Engine engine = load_ample();
  const std::vector<MediaItem> first{noise(64, 96, 1), noise(96, 64, 2)};
  const std::vector<MediaItem> second{noise(96, 64, 2), noise(40, 40, 3), noise(64, 96, 1)};
  const std::vector<Embedding> expected = engine.encode(second, {.use_cache = false});
  (void)engine.encode(first);
  const std::int64_t before = encoded(engine);
  expect_same_items(engine.encode(second), expected);
  EXPECT_EQ(encoded(engine) - before, 1);
  EXPECT_EQ(engine.stats().encoder_cache.hits, 2);
}

TEST_P(CachedCall, TellsWhereTheRowsOfEachItemComeFrom) {
  Engine engine = load_ample();
  const std::vector<MediaItem> items = three_of_two();
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
  EXPECT_EQ(load_with_cache(tiny()).encode(items)[0].cache, CacheUse::kBypass);
}

TEST_P(CachedCall, EncodesAnImageOnceWhateverDtypeItIsWantedIn) {
  Engine engine = load_ample();
  const std::vector<MediaItem> items = three_of_two();
  for (const RowDType dtype : {RowDType::kFloat32, RowDType::kBFloat16, RowDType::kFloat16}) {
    const std::vector<Embedding> expected =
        engine.encode(items, {.dtype = dtype, .use_cache = false});
    expect_same_items(engine.encode(items, {.dtype = dtype}), expected);
  }
  EXPECT_EQ(encoded(engine), 3 * 3 + 2);
  const EncoderCacheStats stats = engine.stats().encoder_cache;
  EXPECT_EQ(stats.misses, 2);
  EXPECT_EQ(stats.hits, 7);
  EXPECT_EQ(stats.joins, 0);
  EXPECT_EQ(stats.items, 2);
  EXPECT_EQ(stats.device.hits + stats.host.hits, 6);
  EXPECT_EQ(engine.stats().skipped, 7);
}

TEST_P(CachedCall, WritesToDestinationsWithGapsAndOtherDtypes) {
  Engine engine = load_ample();
  const std::vector<MediaItem> items = three_of_two();
  const std::vector<Embedding> expected =
      engine.encode(items, {.dtype = RowDType::kBFloat16, .use_cache = false});
  for (int call = 0; call < 2; ++call) {
    const std::vector<test::HostRoom> rooms = test::rooms_for(expected, RowDType::kBFloat16, 6, 1);
    const std::vector<Embedding> got = engine.encode(items, test::blocks_of(rooms), {});
    for (std::size_t i = 0; i < items.size(); ++i) {
      test::expect_described(got[i], expected[i]);
      rooms[i].expect_rows(expected[i]);
    }
  }
}

TEST_P(CachedCall, RefusesADestinationThatIsTooSmallForWhatIsThere) {
  Engine engine = load_ample();
  const std::vector<MediaItem> items{half_an_image("half"), noise(64, 96, 1)};
  (void)engine.encode({&items[1], 1});
  const test::HostRoom room(1, engine.report().width);
  const std::vector<RowBlock> blocks{room.block(), room.block()};
  test::expect_error(ErrorCode::kInvalidArgument, "do not fit into a destination for 1", [&] {
    (void)engine.encode({&items[1], 1}, {blocks.data(), 1}, {});
  });
  EXPECT_TRUE(room.is_untouched());
}

// The second one is encoded, then read by a later call, which asks, too.
TEST_P(CachedCall, AsksForRoomForAVideoWhoseRowsNobodyKnows) {
  for (const EnvironmentFact& fact : describe_environment()) {
    if (fact.first == "video" && fact.second.starts_with("not used")) GTEST_SKIP() << fact.second;
  }
  Engine engine = load_ample();
  const std::string clip = std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/videos/ramp_h264.mp4";
  const std::vector<PlannedItem> items =
      engine.plan_items({video_path(clip), video_path(clip), noise(64, 64, 1)});
  const std::vector<Embedding> expected = engine.encode(items, {.use_cache = false});
  std::mutex mutex;
  std::set<std::pair<const MediaItem*, std::int64_t>> asked;
  EncodeOptions how{.on_error = OnError::kSkip};
  how.has_room = [&](const MediaItem& item, std::int64_t rows) {
    const std::lock_guard lock(mutex);
    asked.emplace(&item, rows);
    return &item != &items[0].media();
  };
  for (const char* const round : {"encoded", "in the cache"}) {
    asked.clear();
    const std::vector<Embedding> got = engine.encode(items, how);
    ASSERT_TRUE(got[0].error) << round;
    EXPECT_EQ(got[0].error->code(), ErrorCode::kUnavailable);
    EXPECT_EQ(std::string(got[0].error->what()),
              cat(clip, ": there is no room for its ", expected[0].rows, " rows"));
    EXPECT_EQ(got[1].data, expected[1].data) << round;
    EXPECT_EQ(got[2].data, expected[2].data) << round;
    const std::set<std::pair<const MediaItem*, std::int64_t>> videos{
        {&items[0].media(), expected[0].rows}, {&items[1].media(), expected[0].rows}};
    EXPECT_EQ(asked, videos) << round;
  }
}

TEST_P(CachedCall, ADestinationThatIsTooSmallFailsNoOtherItem) {
  for (const EnvironmentFact& fact : describe_environment()) {
    if (fact.first == "video" && fact.second.starts_with("not used")) GTEST_SKIP() << fact.second;
  }
  Engine engine = load_ample();
  const std::string clip = std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/videos/ramp_h264.mp4";
  const std::vector<MediaItem> items(2, video_path(clip));  // whose size only decoding tells
  const std::vector<Embedding> expected = engine.encode({items.data(), 1}, {.use_cache = false});
  const std::vector<test::HostRoom> rooms{{1, expected[0].width},
                                          {expected[0].rows, expected[0].width}};
  const std::vector<Embedding> got =
      engine.encode(items, test::blocks_of(rooms), {}, {.on_error = OnError::kSkip});
  ASSERT_TRUE(got[0].error);
  EXPECT_EQ(std::string(got[0].error->what()),
            cat(clip, ": ", expected[0].rows, " rows do not fit into a destination for 1"));
  EXPECT_TRUE(rooms[0].is_untouched());
  test::expect_described(got[1], expected[0]);
  rooms[1].expect_rows(expected[0]);
}

TEST_P(CachedCall, SharesAnItemThatIsLargerThanItsMemory) {
  Engine engine = load_with_cache(tiny());
  const std::vector<MediaItem> items(2, noise(64, 64, 1));
  const std::vector<Embedding> expected = engine.encode(items, {.use_cache = false});
  expect_same_items(engine.encode(items), expected);
  const EncoderCacheStats stats = engine.stats().encoder_cache;
  EXPECT_EQ(stats.bypasses, 1);
  EXPECT_EQ(stats.hits, 1);
  EXPECT_EQ(stats.items, 0);
  EXPECT_EQ(stats.bytes, 0);
}

TEST_P(CachedCall, NeverKeepsAnItemThatFails) {
  Engine engine = load_ample();
  const std::vector<MediaItem> items{half_an_image("a"), noise(64, 64, 1), half_an_image("b")};
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

TEST_P(CachedCall, KeepsNothingOfAFileThatChangesMeanwhile) {
  const test::TemporaryDirectory folder;
  const fs::path path = folder / "image";
  fs::copy_file(image_path(), path);
  Engine engine = load_ample();
  std::vector<MediaItem> items;
  for (unsigned seed = 0; seed < 70; ++seed) items.push_back(noise(32, 32, seed));
  items.push_back(image_file(path.string()));  // the largest is the last to be read
  const auto replace = [&](std::int64_t, std::int64_t) {
    fs::copy_file(other_path(), path, fs::copy_options::overwrite_existing);
  };
  EXPECT_EQ(engine.encode(items, {.progress = replace}).back().source_width_px, 101);
  EXPECT_EQ(engine.stats().encoder_cache.bypasses, 1);
  const std::vector<MediaItem> before{image_file(image_path())};
  EXPECT_EQ(engine.encode(before).front().source_width_px, 180);
}

TEST_P(CachedCall, KeepsVideosBeforeTheyArePruned) {
  Engine engine = load_ample({.video_pruning_rate = 0.5});
  std::vector<MediaItem> items(
      1, video_path(std::string(FOVEA_TEST_GOLDEN_DIR) + "/qwen3_vl/video_frames"));
  items.push_back(noise(64, 64, 1));
  items.push_back(items.front());
  const std::vector<Embedding> expected = engine.encode(items, {.use_cache = false});
  ASSERT_TRUE(expected[2].retained);
  expect_same_items(engine.encode(items), expected);
  expect_same_items(engine.encode(items), expected);
  const EncoderCacheStats stats = engine.stats().encoder_cache;
  EXPECT_EQ(stats.misses, 2);
  EXPECT_EQ(stats.hits, 4);
  const EngineOptions whole;
  const std::size_t row_bytes = static_cast<std::size_t>(expected[0].width) * sizeof(float);
  const std::vector<Embedding> unpruned = load_with_cache(GetParam(), whole).encode(items);
  EXPECT_EQ(stats.bytes, (unpruned[0].rows + unpruned[1].rows) * std::int64_t(row_bytes));
}

TEST_P(CachedCall, TellsItsProgressToTheEnd) {
  Engine engine = load_ample();
  const std::vector<MediaItem> items(3, noise(64, 64, 1));
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

TEST_P(CachedCall, ReplicasFindWhatAnotherHasEncoded) {
  Engine engine = load_ample({.data_parallel_size = 2});
  std::vector<MediaItem> items;
  for (unsigned seed = 0; seed < 8; ++seed) items.push_back(noise(64, 32 + 32 * (seed % 3), seed));
  const std::vector<Embedding> expected = engine.encode(items, {.use_cache = false});
  expect_same_items(engine.encode(items), expected);
  std::ranges::reverse(items);
  std::vector<Embedding> got = engine.encode(items);
  std::ranges::reverse(got);
  expect_same_items(got, expected);
  const EncoderCacheStats stats = engine.stats().encoder_cache;
  EXPECT_EQ(stats.hits, 8);
  EXPECT_EQ(stats.device.capacity_bytes, 2 * GetParam().device_bytes);
  EXPECT_EQ(stats.host.capacity_bytes, GetParam().host_bytes);
}

TEST_P(CachedCall, NamesRowsByWhatTheyDependOn) {
  Engine engine = load_ample();
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

class CachedFamily : public ::testing::TestWithParam<std::tuple<std::string, Memory>> {};

TEST_P(CachedFamily, HasTheRowsOfACallWithoutACache) {
  const fs::path folder = std::get<0>(GetParam());
  Engine engine = load_with_cache(folder, std::get<1>(GetParam()));
  std::vector<MediaItem> items;
  for (const std::string& image : images_in((folder / "images").string())) {
    items.push_back(image_file(image));
  }
  if (engine.report().videos && fs::exists(folder / "video_frames")) {
    items.push_back(video_path((folder / "video_frames").string()));
  }
  const std::vector<Embedding> expected = engine.encode(items, {.use_cache = false});
  const std::int64_t once = encoded(engine);
  expect_same_items(engine.encode(items), expected);
  expect_same_items(engine.encode(items), expected);
  EXPECT_EQ(encoded(engine), 2 * once);
}

std::vector<std::string> models_with_images() {
  std::vector<std::string> models;
  for (const std::string& model : test::golden_models()) {
    if (fs::exists(fs::path(model) / "images")) models.push_back(model);
  }
  return models;
}

INSTANTIATE_TEST_SUITE_P(All, CachedFamily,
                         ::testing::Combine(::testing::ValuesIn(models_with_images()),
                                            ::testing::Values(kHost, kDevice)),
                         [](const auto& family) {
                           return fs::path(std::get<0>(family.param)).filename().string() + "_" +
                                  name_of(std::get<1>(family.param));
                         });

/// Memories that are too small for all items.
class RandomCachedCalls : public ::testing::TestWithParam<Memory> {};

TEST_P(RandomCachedCalls, OnFourThreadsGetTheRowsOfCallsWithoutACache) {
  constexpr std::size_t kItems = 12;
  std::vector<MediaItem> pool;
  for (unsigned seed = 0; seed < kItems; ++seed) {
    pool.push_back(noise(32 + 8 * (seed % 5), 32 + 16 * (seed % 3), seed));
  }
  Engine engine = load_with_cache(GetParam());
  const std::vector<Embedding> expected = engine.encode(pool, {.use_cache = false});
  const auto call = [&](std::mt19937& random) {
    std::vector<MediaItem> items;
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < 1 + random() % 5; ++i) {
      which.push_back(random() % kItems);
      items.push_back(pool[which.back()]);
    }
    std::stop_source stop;
    EncodeOptions how{.bounds = {.stop = stop.get_token()}};
    if (random() % 4 == 0) how.progress = [&](std::int64_t, std::int64_t) { stop.request_stop(); };
    try {
      const std::vector<Embedding> rows = engine.encode(items, how);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i].data, expected[which[i]].data);
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCancelled) << error.what();
    }
    const EncoderCacheStats stats = engine.stats().encoder_cache;
    EXPECT_LE(stats.bytes, stats.capacity_bytes);
  };
  std::vector<std::jthread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&call, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 40; ++i) call(random);
    });
  }
  threads.clear();
  const EncoderCacheStats stats = engine.stats().encoder_cache;
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_EQ(stats.freeable_bytes, stats.bytes);
  EXPECT_GT(stats.hits, 0);
  EXPECT_GT(stats.evictions, 0);
}

INSTANTIATE_TEST_SUITE_P(In, RandomCachedCalls,
                         ::testing::Values(Memory{0, 30'000}, Memory{12'000, 12'000}),
                         [](const auto& memory) { return name_of(memory.param); });

}  // namespace
}  // namespace fovea
