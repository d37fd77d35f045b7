// Items that ranks share: the rows and the errors of one engine, whatever the source, and who
// encodes which units.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>

#include "engine/row_gather.h"
#include "engine/rows/host_room.h"
#include "fovea/encode_on_ranks.h"
#include "media/test_images.h"
#include "ranks/golden_engine.h"
#include "ranks/memory_gathers.h"
#include "ranks/mixed_items.h"
#include "ranks/thread_group.h"
#include "support/property.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using test::golden_qwen;
using test::mixed_items;
using test::texts_of;

constexpr std::int64_t kSide = 64;

/// A video of noise; two frames are a unit of Qwen3-VL.
MediaItem clip(std::int64_t frames, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(frames * kSide * kSide * 3));
  std::ranges::generate(rgb, [&] { return static_cast<std::uint8_t>(random()); });
  return video_rgb(std::move(rgb), frames, kSide, kSide, 2.0, cat("clip ", seed));
}

/// So many encoded frames, each of a grey of its own.
std::vector<MediaBytes> encoded_frames(std::size_t count) {
  std::vector<MediaBytes> frames;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<std::uint16_t> samples(kSide * kSide * 3, static_cast<std::uint16_t>(9 * i));
    frames.push_back(test::encode_png({.width = kSide, .height = kSide}, samples));
  }
  return frames;
}

Engine load_units(EngineOptions options = {}, const std::string& model = golden_qwen()) {
  options.packing = PackingPolicy::kUnits;
  return test::load_on_cpu(model, options);
}

/// Engines that pack by units.
std::vector<Engine> load_several(std::size_t count, const EngineOptions& options = {}) {
  std::vector<Engine> engines;
  while (engines.size() < count) engines.push_back(load_units(options));
  return engines;
}

/// Calls encode_on_ranks on a thread for each engine. @return the results of each rank.
std::vector<std::vector<Embedding>> encode_on(std::vector<Engine>& engines,
                                              std::span<const MediaItem> items,
                                              const EncodeOptions& options = {}) {
  std::vector<std::vector<Embedding>> results(engines.size());
  const auto errors =
      test::on_ranks(connect_threads(static_cast<int>(engines.size())), [&](Communicator& ranks) {
        const auto rank = static_cast<std::size_t>(ranks.rank());
        results[rank] = encode_on_ranks(engines[rank], ranks, items, options);
      });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
  return results;
}

/// The rows that each engine has had to compute so far.
std::vector<std::int64_t> live_rows(std::span<const Engine> engines) {
  std::vector<std::int64_t> rows;
  for (const Engine& engine : engines) rows.push_back(engine.stats().paths[0].live_rows);
  return rows;
}

/// The checkpoint of a family.
class SharedItemsOf : public ::testing::TestWithParam<std::string> {};

TEST_P(SharedItemsOf, HaveTheRowsOfOneOnAnyNumberOfRanks) {
  Engine engine = load_units({}, GetParam());
  std::vector<MediaItem> items = mixed_items(engine.report(), 1, 2);  // the second has tiles
  if (engine.report().videos) items.push_back(clip(13));
  const std::vector<std::string> expected = texts_of(engine.encode(items));
  for (const int size : {2, 5, 8}) {
    SCOPED_TRACE(size);
    const auto group = connect_threads(size);
    const auto errors = test::on_ranks(group, [&](Communicator& ranks) {
      EXPECT_EQ(texts_of(encode_on_ranks(engine, ranks, items)), expected);
    });
    for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
  }
}

INSTANTIATE_TEST_SUITE_P(Families, SharedItemsOf, ::testing::ValuesIn(test::golden_models()),
                         [](const auto& model) {
                           return std::filesystem::path(model.param).filename().string();
                         });

TEST(SharedItems, KeepEveryRankBusy) {
  const std::vector<MediaItem> items{clip(45)};  // 23 units
  const std::vector<std::string> expected = texts_of(load_units().encode(items));
  for (std::size_t size = 2; size <= 8; ++size) {
    SCOPED_TRACE(size);
    std::vector<Engine> engines = load_several(size);
    for (const auto& results : encode_on(engines, items)) EXPECT_EQ(texts_of(results), expected);
    const std::vector<std::int64_t> rows = live_rows(engines);
    const std::int64_t unit_rows = engines[0].plan_items(items)[0].info()->units[0].rows;
    EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), 23 * unit_rows);
    EXPECT_LE(std::ranges::max(rows) - std::ranges::min(rows), unit_rows);
    std::int64_t hits = 0;
    for (const Engine& engine : engines) hits += engine.stats().graph_hits;
    EXPECT_EQ(hits, 1) << "an item counts once, on the rank of its first units";
  }
}

TEST(SharedItems, StayWholeWhereLoadsAreAsEven) {
  const std::vector<MediaItem> items{clip(20, 1), clip(20, 2), clip(20, 3)};
  std::vector<Engine> engines = load_several(3);
  (void)encode_on(engines, items);
  for (const Engine& engine : engines) EXPECT_EQ(engine.stats().graph_hits, 1);
  engines.pop_back();
  (void)encode_on(engines, items);
  EXPECT_EQ(engines[0].stats().paths[0].live_rows, engines[1].stats().paths[0].live_rows);
}

TEST(SharedItems, StayWholeWhereOtherPackingIsAsked) {
  const std::vector<MediaItem> items{clip(20)};
  std::vector<Engine> engines;
  for (int i = 0; i < 2; ++i) engines.push_back(test::load_on_cpu(golden_qwen()));
  (void)encode_on(engines, items);
  EXPECT_EQ(engines[1].stats().sub_batches, 0);
}

TEST(SharedItems, StayWholeWhereTheyArePruned) {
  const std::vector<MediaItem> items{clip(20)};
  const EngineOptions options{.video_pruning_rate = 0.5};
  const std::vector<std::string> expected = texts_of(load_units(options).encode(items));
  std::vector<Engine> engines = load_several(2, options);
  for (const auto& results : encode_on(engines, items)) EXPECT_EQ(texts_of(results), expected);
  EXPECT_EQ(engines[1].stats().sub_batches, 0);
}

TEST(SharedItems, ComeFromAnySourceWhoseSizeAHeaderTells) {
  const test::TemporaryDirectory folder;
  const std::vector<MediaBytes> frames = encoded_frames(11);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto bytes = std::as_bytes(frames[i].view());
    std::ofstream(folder / cat(10 + i, ".png"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  }
  constexpr std::int64_t kPatches = 20 * 4 * 4;
  constexpr std::int64_t kPatchDim = 3 * 2 * 16 * 16;
  std::vector<float> values(kPatches * kPatchDim, -1.0F);
  std::fill_n(values.begin(), std::ssize(values) / 2, 1.0F);
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(values.data());
  std::vector<MediaItem> sources{
      clip(11), video_frames(frames, "frames"), video_path(folder.path()),
      pixel_values(std::vector<std::uint8_t>(bytes, bytes + values.size() * sizeof(float)),
                   RowDType::kFloat32, kPatches, kPatchDim, {20, 4, 4}, "values")};
  sources.back().modality = Modality::kVideo;
  for (const MediaItem& item : sources) {
    SCOPED_TRACE(item.name);
    const std::vector<std::string> expected = texts_of(load_units().encode({&item, 1}));
    std::vector<Engine> engines = load_several(3);
    for (const auto& results : encode_on(engines, {&item, 1})) {
      EXPECT_EQ(texts_of(results), expected);
    }
    for (const std::int64_t rows : live_rows(engines)) EXPECT_GT(rows, 0);
  }
}

TEST(SharedItems, AreKeptByTheCacheOfEachRankInItsShare) {
  const std::vector<MediaItem> items{clip(12)};
  const EngineOptions options{.encoder_cache_bytes = std::int64_t{64} << 20};
  Engine alone = load_units(options);
  const std::vector<Embedding> expected = alone.encode(items);
  std::vector<Engine> engines = load_several(3, options);
  for (const CacheUse use : {CacheUse::kMiss, CacheUse::kHit}) {
    const auto results = encode_on(engines, items);
    for (const auto& of_rank : results) EXPECT_EQ(texts_of(of_rank), texts_of(expected));
    EXPECT_EQ(results[0][0].key, expected[0].key) << "of the rows of the whole item";
    EXPECT_EQ(results[0][0].cache, use);
    EXPECT_EQ(results[1][0].key, "");
    for (const Engine& engine : engines) {
      EXPECT_EQ(engine.stats().encoder_cache.hits, use == CacheUse::kHit ? 1 : 0);
    }
  }
}

/// How a group takes rows from rank to rank.
class SharedItemsInBlocks : public ::testing::TestWithParam<bool> {
 protected:
  /// Encodes into blocks on each rank. @param check of a rank.
  void encode(std::span<const MediaItem> items, const std::vector<test::HostRoom>& rooms,
              const EncodeOptions& options,
              const std::function<void(const std::vector<Embedding>&,
                                       const std::vector<test::HostRoom>&)>& check) {
    std::atomic<int> num_gathers{0};
    const auto group = connect_threads(3);
    const auto errors = test::on_ranks(group, [&](Communicator& threads) {
      test::MemoryGathers gathers(threads, num_gathers);
      const std::vector<test::HostRoom> own = rooms;
      Communicator& ranks = GetParam() ? gathers : threads;
      check(encode_on_ranks(engine_, ranks, items, test::blocks_of(own), {}, options), own);
    });
    for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
    EXPECT_EQ(num_gathers, GetParam() ? 3 : 0);
  }

  Engine engine_ = load_units();
};

INSTANTIATE_TEST_SUITE_P(Ways, SharedItemsInBlocks, ::testing::Bool(),
                         [](const auto& way) { return way.param ? "Device" : "Host"; });

TEST_P(SharedItemsInBlocks, HaveTheRowsOfOne) {
  const std::vector<MediaItem> items{clip(21, 1), clip(2, 2), clip(15, 3)};
  for (const auto& [dtype, gap] : {std::pair{RowDType::kFloat32, 0}, {RowDType::kBFloat16, 6}}) {
    const std::vector<Embedding> expected = engine_.encode(items, {.dtype = dtype});
    encode(items, test::rooms_for(expected, dtype, gap, 2), {.dtype = dtype},
           [&](const auto& got, const auto& rooms) {
             for (std::size_t i = 0; i < items.size(); ++i) {
               test::expect_described(got[i], expected[i]);
               rooms[i].expect_rows(expected[i]);
             }
           });
  }
}

TEST_P(SharedItemsInBlocks, StayWholeWhereTheyDoNotFit) {
  const std::vector<MediaItem> items{clip(21, 1), clip(20, 2)};
  const EncodeOptions options{.on_error = OnError::kSkip};
  const std::vector<Embedding> expected = engine_.encode(items);
  const std::vector<test::HostRoom> rooms{{expected[0].rows - 1, expected[0].width},
                                          {expected[1].rows, expected[1].width}};
  encode(items, rooms, options, [&](const auto& got, const auto& own) {
    ASSERT_TRUE(got[0].error);
    EXPECT_THAT(got[0].error->what(), ::testing::HasSubstr("rows do not fit into a destination"));
    EXPECT_TRUE(own[0].is_untouched());
    own[1].expect_rows(expected[1]);
  });
}

TEST_P(SharedItemsInBlocks, FailAloneWhereAShareDoes) {
  std::vector<MediaBytes> frames = encoded_frames(12);
  frames[9] = test::png_that_claims(kSide, kSide);
  const std::vector<MediaItem> items{video_frames(frames, "video"), clip(20, 2)};
  const EncodeOptions options{.on_error = OnError::kSkip};
  const std::vector<Embedding> expected = engine_.encode(items, options);
  const std::vector<test::HostRoom> rooms{{100, expected[1].width},
                                          {expected[1].rows, expected[1].width}};
  encode(items, rooms, options, [&](const auto& got, const auto& own) {
    ASSERT_TRUE(got[0].error);
    EXPECT_STREQ(got[0].error->what(), expected[0].error->what());
    EXPECT_EQ(got[0].rows, 0);
    own[1].expect_rows(expected[1]);
  });
}

/// A video of which a frame cannot be encoded.
struct BrokenCase {
  const char* name;
  std::size_t frame;
  int rank;  // that fails, of three
  const char* message;
};

class BrokenShares : public ::testing::TestWithParam<BrokenCase> {};

TEST_P(BrokenShares, AreTheSameErrorOnAllRanks) {
  std::vector<MediaBytes> frames = encoded_frames(12);
  const std::size_t broken = GetParam().frame;
  const std::vector<std::uint16_t> wide(2 * kSide * kSide * 3);
  frames[broken] = broken % 2 == 0 ? test::png_that_claims(kSide, kSide)
                                   : test::encode_png({.width = 2 * kSide, .height = kSide}, wide);
  const std::vector<MediaItem> items{video_frames(frames, "video")};
  Engine engine = load_units();
  const std::vector<std::string> expected =
      texts_of(engine.encode(items, {.on_error = OnError::kSkip}));
  EXPECT_THAT(expected[0], ::testing::HasSubstr(GetParam().message));
  const auto group = connect_threads(3);
  for (const OnError on_error : {OnError::kSkip, OnError::kFail}) {
    const auto errors = test::on_ranks(group, [&](Communicator& ranks) {
      EXPECT_EQ(texts_of(encode_on_ranks(engine, ranks, items, {.on_error = on_error})), expected);
    });
    for (const auto& error : errors) {
      EXPECT_EQ(error.has_value(), on_error == OnError::kFail);
      if (!error) continue;
      EXPECT_THAT(error->what(), ::testing::StartsWith(cat("rank ", GetParam().rank, ": ")));
      EXPECT_THAT(expected[0], ::testing::HasSubstr(error->what() + std::size("rank N:")));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    SharedItems, BrokenShares,
    ::testing::Values(BrokenCase{"InTheFirst", 2, 0, "video[2]: "},
                      BrokenCase{"InTheSecond", 6, 1, "video[6]: "},
                      BrokenCase{"AtTheEnd", 10, 2, "video[10]: "},
                      BrokenCase{"OfAnotherSizeInTheSecond", 5, 1, "frame 5 is 128x64 pixels"},
                      BrokenCase{"OfAnotherSizeInTheLast", 9, 2, "frame 9 is 128x64 pixels"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(SharedItemsProperty, EveryUnitIsEncodedOnceAndLoadsDifferByOneUnit) {
  Engine engine = load_units();
  test::for_all(40, [&](auto& random) {
    std::vector<MediaItem> items;
    for (std::int64_t i = test::uniform(random, 1, 12); i > 0; --i) {
      const std::int64_t large = test::uniform(random, 0, 3) == 0 ? 10 : 1;
      items.push_back(clip(4 * large * test::uniform(random, 1, 5)));
    }
    const std::vector<PlannedItem> planned = RowGather::plan(engine, items, {});
    const auto size = static_cast<std::size_t>(test::uniform(random, 2, 8));
    const RowGather::Shares shares = RowGather::share(engine, planned, {}, size);
    std::vector<std::size_t> order = shares.assignment.order;
    std::ranges::sort(order);
    std::vector<std::size_t> all(shares.pieces.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    EXPECT_EQ(order, all) << "every piece goes to one rank";
    std::int64_t largest = 0;  // cost of a unit, or of an item that stays whole
    std::vector<std::int64_t> next(items.size());
    for (const auto& [item, share] : shares.pieces) {
      const bool is_whole = share.units.count == 0;
      const std::int64_t units = planned[item].info()->units[0].count;
      const std::span<const PlannedItem> alone(&planned[item], 1);
      const std::int64_t cost = RowGather::share(engine, alone, {}, 1).assignment.loads[0];
      largest = std::max(largest, is_whole ? cost : cost / units + 1);
      EXPECT_EQ(share.units.first, next[item]);
      next[item] += is_whole ? units : share.units.count;
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      EXPECT_EQ(next[i], planned[i].info()->units[0].count);
    }
    const std::vector<std::int64_t>& loads = shares.assignment.loads;
    const std::int64_t rounded = std::ssize(shares.pieces);  // costs are whole numbers
    EXPECT_LE(std::ranges::max(loads) - std::ranges::min(loads), largest + rounded);
  });
}

}  // namespace
}  // namespace fovea
