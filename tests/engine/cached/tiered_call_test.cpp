// Items whose rows lie in memory of the device: encoded once, with the rows of a call without a
// cache. The device memory of a CPU is host memory.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "engine/cached/noise.h"
#include "engine/rows/host_room.h"
#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using test::noise;

constexpr std::int64_t kAmple = std::int64_t{64} << 20;

Engine load_tiered(std::int64_t device_bytes, std::int64_t host_bytes = 0,
                   EngineOptions options = {}) {
  options.device = "cpu";
  options.num_threads = 2;
  options.encoder_cache_bytes = host_bytes;
  options.encoder_device_cache_size = device_bytes;
  return Engine::load(test::golden_folder("qwen3_vl", "golden.safetensors"), options);
}

void expect_same(std::span<const Embedding> got, std::span<const Embedding> expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].data, expected[i].data) << i;
    EXPECT_EQ(got[i].rows, expected[i].rows);
    EXPECT_EQ(got[i].width, expected[i].width);
    EXPECT_EQ(got[i].dtype, expected[i].dtype);
    EXPECT_EQ(got[i].name, expected[i].name);
    EXPECT_EQ(got[i].modality, expected[i].modality);
    EXPECT_EQ(got[i].grid_thw, expected[i].grid_thw);
    EXPECT_EQ(got[i].retained, expected[i].retained);
    EXPECT_EQ(got[i].timestamps, expected[i].timestamps);
    EXPECT_EQ(got[i].source_width_px, expected[i].source_width_px);
    EXPECT_EQ(got[i].error.has_value(), expected[i].error.has_value());
  }
}

std::int64_t encoded(const Engine& engine) {
  const Stats stats = engine.stats();
  return stats.graph_hits + stats.graph_partial + stats.graph_misses;
}

/// An image of which only the header is whole.
MediaItem half_an_image(const std::string& name) {
  std::ifstream file(std::string(FOVEA_TEST_GOLDEN_DIR) + "/qwen3_vl/images/photo_180x180.jpg",
                     std::ios::binary);
  std::vector<std::uint8_t> jpeg{std::istreambuf_iterator<char>(file), {}};
  jpeg.resize(jpeg.size() / 2);
  return image_bytes(std::move(jpeg), name);
}

TEST(TieredCall, TellsWhereTheRowsOfEachItemComeFrom) {
  Engine engine = load_tiered(kAmple);
  const std::vector<MediaItem> items{noise(64, 96, 1), noise(96, 64, 2), noise(64, 96, 1)};
  const std::vector<Embedding> first = engine.encode(items);
  EXPECT_EQ(first[0].cache, CacheUse::kMiss);
  EXPECT_EQ(first[0].graph, GraphUse::kHit);
  EXPECT_EQ(first[2].cache, CacheUse::kHit) << "as the first";
  EXPECT_EQ(first[2].graph, GraphUse::kNone);
  for (const Embedding& again : engine.encode(items)) EXPECT_EQ(again.cache, CacheUse::kHit);
  EXPECT_EQ(load_tiered(1).encode(items)[0].cache, CacheUse::kBypass);
}

TEST(TieredCall, EncodesAnImageOnceWhateverDtypeItIsWantedIn) {
  Engine engine = load_tiered(kAmple);
  const std::vector<MediaItem> items{noise(64, 96, 1), noise(96, 64, 2), noise(64, 96, 1)};
  for (const RowDType dtype : {RowDType::kFloat32, RowDType::kBFloat16, RowDType::kFloat16}) {
    const std::vector<Embedding> expected =
        engine.encode(items, {.dtype = dtype, .use_cache = false});
    std::vector<Embedding> got = engine.encode(items, {.dtype = dtype});
    got[2].name = expected[2].name;
    expect_same(got, expected);
  }
  EXPECT_EQ(encoded(engine), 3 * 3 + 2);
  const EncoderCacheStats stats = engine.stats().encoder_cache;
  EXPECT_EQ(stats.misses, 2);
  EXPECT_EQ(stats.hits, 7);
  EXPECT_EQ(stats.joins, 0);
  EXPECT_EQ(stats.device.items, 2);
  EXPECT_EQ(stats.device.hits, 6);
  EXPECT_EQ(engine.stats().skipped, 7);
}

TEST(TieredCall, WritesToDestinationsWithGapsAndOtherDtypes) {
  Engine engine = load_tiered(kAmple);
  const std::vector<MediaItem> items{noise(64, 96, 1), noise(96, 64, 2), noise(64, 96, 1)};
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

TEST(TieredCall, RefusesADestinationThatIsTooSmallForWhatIsThere) {
  Engine engine = load_tiered(kAmple);
  const std::vector<MediaItem> items{half_an_image("half"), noise(64, 96, 1)};
  (void)engine.encode({&items[1], 1});
  const test::HostRoom room(1, engine.report().width);
  const std::vector<RowBlock> blocks{room.block(), room.block()};
  test::expect_error(ErrorCode::kInvalidArgument, "do not fit into a destination for 1", [&] {
    (void)engine.encode({&items[1], 1}, {blocks.data(), 1}, {});
  });
  EXPECT_TRUE(room.is_untouched());
}

TEST(TieredCall, RowsGoToTheHostAndComeBack) {
  constexpr std::int64_t kTwoItems = 2 * 4096;
  Engine engine = load_tiered(kTwoItems, 2 * kTwoItems);
  std::vector<MediaItem> items;
  for (unsigned seed = 0; seed < 4; ++seed) items.push_back(noise(64, 64, seed));
  const std::vector<Embedding> expected = engine.encode(items, {.use_cache = false});
  ASSERT_EQ(expected[0].data.size(), kTwoItems / 2);
  for (int call = 0; call < 3; ++call) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      expect_same(engine.encode({&items[i], 1}), {&expected[i], 1});
    }
  }
  const EncoderCacheStats stats = engine.stats().encoder_cache;
  EXPECT_EQ(stats.misses, 4);
  EXPECT_EQ(stats.host.hits, 8);
  EXPECT_EQ(stats.device.evictions, 10);
  EXPECT_EQ(stats.evictions, 0);
}

TEST(TieredCall, HasNoRoomForAnItemLargerThanItsMemory) {
  Engine engine = load_tiered(1000);
  const std::vector<MediaItem> items(2, noise(64, 64, 1));
  const std::vector<Embedding> expected = engine.encode(items, {.use_cache = false});
  expect_same(engine.encode(items), expected);
  EXPECT_EQ(engine.stats().encoder_cache.items, 0);
  EXPECT_EQ(engine.stats().encoder_cache.bypasses, 2);
}

TEST(TieredCall, NeverKeepsAnItemThatFails) {
  Engine engine = load_tiered(kAmple);
  const std::vector<MediaItem> items{half_an_image("a"), noise(64, 64, 1), half_an_image("b")};
  for (int call = 1; call <= 2; ++call) {
    const std::vector<Embedding> rows = engine.encode(items, {.on_error = OnError::kSkip});
    ASSERT_TRUE(rows[0].error && rows[2].error);
    EXPECT_TRUE(std::string(rows[0].error->what()).starts_with("a: "));
    EXPECT_TRUE(std::string(rows[2].error->what()).starts_with("b: "));
    EXPECT_FALSE(rows[1].error);
    EXPECT_EQ(engine.stats().encoder_cache.items, 1);
  }
  test::expect_error(ErrorCode::kCorruptData, "a: ", [&] { (void)engine.encode(items); });
}

TEST(TieredCall, KeepsNothingOfAFileThatChangesMeanwhile) {
  const test::TemporaryDirectory folder;
  const fs::path path = folder / "image";
  const fs::path images = fs::path(FOVEA_TEST_GOLDEN_DIR) / "qwen3_vl/images";
  fs::copy_file(images / "photo_180x180.jpg", path);
  Engine engine = load_tiered(kAmple);
  std::vector<MediaItem> items;
  for (unsigned seed = 0; seed < 70; ++seed) items.push_back(noise(32, 32, seed));
  items.push_back(image_file(path.string()));  // the largest is the last to be read
  const auto replace = [&](std::int64_t, std::int64_t) {
    fs::copy_file(images / "noise_101x61.png", path, fs::copy_options::overwrite_existing);
  };
  EXPECT_EQ(engine.encode(items, {.progress = replace}).back().source_width_px, 101);
  const std::vector<MediaItem> before{image_file((images / "photo_180x180.jpg").string())};
  EXPECT_EQ(engine.encode(before).front().source_width_px, 180);
}

TEST(TieredCall, KeepsVideosBeforeTheyArePruned) {
  Engine engine = load_tiered(kAmple, 0, {.video_pruning_rate = 0.5});
  std::vector<MediaItem> items(
      1, video_path(std::string(FOVEA_TEST_GOLDEN_DIR) + "/qwen3_vl/video_frames"));
  items.push_back(noise(64, 64, 1));
  items.push_back(items.front());
  const std::vector<Embedding> expected = engine.encode(items, {.use_cache = false});
  ASSERT_TRUE(expected[2].retained);
  expect_same(engine.encode(items), expected);
  expect_same(engine.encode(items), expected);
  EXPECT_EQ(engine.stats().encoder_cache.misses, 2);
}

TEST(TieredCall, TellsItsProgressToTheEnd) {
  Engine engine = load_tiered(kAmple);
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

TEST(TieredCall, ReplicasFindWhatAnotherHasEncoded) {
  Engine engine = load_tiered(kAmple, 0, {.data_parallel_size = 2});
  std::vector<MediaItem> items;
  for (unsigned seed = 0; seed < 8; ++seed) items.push_back(noise(64, 32 + 32 * (seed % 3), seed));
  const std::vector<Embedding> expected = engine.encode(items, {.use_cache = false});
  expect_same(engine.encode(items), expected);
  std::ranges::reverse(items);
  std::vector<Embedding> got = engine.encode(items);
  std::ranges::reverse(got);
  expect_same(got, expected);
  EXPECT_EQ(engine.stats().encoder_cache.hits, 8);
  EXPECT_EQ(engine.stats().encoder_cache.device.capacity_bytes, 2 * kAmple);
}

TEST(TieredCall, NeedsASizeThatIsNotNegative) {
  test::expect_error(ErrorCode::kInvalidArgument, "got -1", [] { (void)load_tiered(-1); });
}

class TieredFamily : public ::testing::TestWithParam<std::string> {};

TEST_P(TieredFamily, HasTheRowsOfACallWithoutACache) {
  const fs::path folder = GetParam();
  Engine engine = Engine::load(
      folder, {.device = "cpu", .num_threads = 2, .encoder_device_cache_size = kAmple});
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

INSTANTIATE_TEST_SUITE_P(All, TieredFamily, ::testing::ValuesIn(models_with_images()),
                         [](const auto& model) {
                           return fs::path(model.param).filename().string();
                         });

TEST(RandomTieredCalls, OnFourThreadsGetTheRowsOfCallsWithoutACache) {
  constexpr std::size_t kItems = 12;
  std::vector<MediaItem> pool;
  for (unsigned seed = 0; seed < kItems; ++seed) {
    pool.push_back(noise(32 + 8 * (seed % 5), 32 + 16 * (seed % 3), seed));
  }
  Engine engine = load_tiered(12'000, 12'000);
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
  EXPECT_GT(stats.device.hits, 0);
  EXPECT_GT(stats.device.evictions, 0);
}

}  // namespace
}  // namespace fovea
