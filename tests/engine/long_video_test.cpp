// Videos that no window has room for: encoded a few units at a time, with the rows of the whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/file.h"
#include "engine/cached/noise.h"
#include "engine/row_gather.h"
#include "engine/rows/host_room.h"
#include "fovea/fovea.h"
#include "graph/recording_log.h"
#include "media/test_images.h"
#include "media/video.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/json.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

constexpr std::int64_t kCacheBytes = std::int64_t{64} << 20;  // for more rows than there are

/// 768 frames of 252 x 252 pixels: 140 MiB, and a window has 128. Two frames are a unit of 81 rows.
class LongVideo : public ::testing::Test {
 protected:
  static constexpr std::int64_t kFrames = 768;
  static constexpr std::int64_t kSide = 252;
  static constexpr std::int64_t kUnits = kFrames / 2;
  static constexpr std::int64_t kUnitRows = 81;
  /// Of the slides, which are quick to encode: each stands still for so many frames.
  static constexpr std::int64_t kStill = 24;

  /// @param still frames that are equal, one after the other.
  static MediaItem video(std::int64_t num_frames, std::int64_t still) {
    constexpr auto kBytes = static_cast<std::size_t>(kSide * kSide * 3);
    std::mt19937 random(5);
    std::vector<std::uint8_t> noise(2 * kBytes);
    std::ranges::generate(noise, [&] { return static_cast<std::uint8_t>(random()); });
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(num_frames) * kBytes);
    for (std::int64_t frame = 0; frame < num_frames; ++frame) {
      const std::uint8_t* const content = &noise[static_cast<std::size_t>(frame / still * 241)];
      std::memcpy(&rgb[static_cast<std::size_t>(frame) * kBytes], content, kBytes);
    }
    return video_rgb(std::move(rgb), num_frames, kSide, kSide, 2.0, "video");
  }
  static const MediaItem& slides() {
    static const MediaItem media = video(kFrames, kStill);
    return media;
  }
  /// What is known of the slides, their rows made of those of a video that shows each for one unit.
  static const Embedding& expected_slides() {
    static const Embedding expected = [] {
      constexpr std::int64_t kSlides = kFrames / kStill;
      const MediaItem once = video(2 * kSlides, 2);
      const Embedding unit_each = load({}).encode({&once, 1}).front();
      Embedding all = unit_each;
      all.rows = kUnits * kUnitRows;
      all.data.resize(0);
      all.data.resize(unit_each.data.size() * kStill / 2);
      const std::size_t unit_bytes = unit_each.data.size() / kSlides;
      for (std::size_t unit = 0; unit < kUnits; ++unit) {
        const std::size_t slide = unit / (kStill / 2);
        std::memcpy(all.data.data() + unit * unit_bytes, unit_each.data.data() + slide * unit_bytes,
                    unit_bytes);
      }
      return all;
    }();
    return expected;
  }

  static Engine load(EngineOptions options) {
    options.device = "cpu";
    if (options.num_threads == 0) options.num_threads = 2;
    return Engine::load(test::golden_folder("qwen2_5_vl", "golden.safetensors"), options);
  }
  static Engine load_units(EngineOptions options = {}) {
    options.packing = PackingPolicy::kUnits;
    return load(options);
  }
};

TEST_F(LongVideo, HasTheRowsOfGreedyPackingAndEveryUnitIsReplayed) {
  const MediaItem media = video(kFrames, 4);
  const Embedding expected = load({}).encode({&media, 1}).front();
  EXPECT_EQ(expected.rows, kUnits * kUnitRows);
  EXPECT_EQ(expected.graph, GraphUse::kMiss) << "more than the largest budget has room for";
  for (const bool reuse : {false, true}) {
    Engine engine = load_units({.reuse_units = reuse});
    const Embedding got = engine.encode({&media, 1}).front();
    EXPECT_TRUE(got.data == expected.data);
    EXPECT_EQ(got.graph, GraphUse::kHit);
    EXPECT_EQ(got.units_reused, reuse ? kUnits / 2 : 0);
    const Stats stats = engine.stats();
    EXPECT_EQ(stats.graph_hits, 1);
    EXPECT_EQ(stats.units_reused, got.units_reused);
    EXPECT_EQ(stats.paths[0].live_rows, (kUnits - got.units_reused) * kUnitRows);
    EXPECT_EQ(stats.paths[0].eager_runs, 0);
    // What else is known of it is that of the whole.
    EXPECT_EQ(got.rows, expected.rows);
    EXPECT_EQ(got.grid_thw, expected.grid_thw);
    EXPECT_EQ(got.num_frames, kFrames);
    EXPECT_EQ(got.timestamps, expected.timestamps);
    EXPECT_GT(got.times.resize_ms, 0);
    EXPECT_GT(got.times.encode_ms, 0);
  }
}

/// A way to encode the slides.
struct SlidesCase {
  const char* name;
  EngineOptions options = {};
  bool eager = false;
};

void PrintTo(const SlidesCase& way, std::ostream* out) { *out << way.name; }  // NOLINT: GoogleTest

class LongVideoWays : public LongVideo, public ::testing::WithParamInterface<SlidesCase> {};

TEST_P(LongVideoWays, GiveTheSameRows) {
  Engine engine = load_units(GetParam().options);
  const Embedding got = engine.encode({&slides(), 1}, {.enforce_eager = GetParam().eager}).front();
  EXPECT_TRUE(got.data == expected_slides().data);
  EXPECT_EQ(got.graph, GetParam().eager ? GraphUse::kMiss : GraphUse::kHit);
  EXPECT_GT(got.units_reused, kUnits / 2);
  const Stats stats = engine.stats();
  EXPECT_EQ(stats.graph_hits + stats.graph_misses, 1);
  for (const ReplicaStats& replica : engine.replica_stats()) {
    EXPECT_GT(replica.stats.sub_batches, 0) << "every replica has its share";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, LongVideoWays,
    ::testing::Values(SlidesCase{"eager", {}, true}, SlidesCase{"one_thread", {.num_threads = 1}},
                      SlidesCase{"two_replicas", {.data_parallel_size = 2}},
                      SlidesCase{"cache", {.encoder_cache_bytes = kCacheBytes}},
                      SlidesCase{
                          "device_cache",
                          {.data_parallel_size = 3, .encoder_device_cache_size = kCacheBytes}}),
    [](const auto& way) { return std::string(way.param.name); });

TEST_F(LongVideo, GoesToADestinationWithAStride) {
  for (const int replicas : {1, 2}) {
    Engine engine = load_units({.data_parallel_size = replicas});
    const std::vector<test::HostRoom> rooms =
        test::rooms_for({&expected_slides(), 1}, RowDType::kFloat32, 24, 2);
    const std::vector<Embedding> got =
        engine.encode(std::span(&slides(), 1), test::blocks_of(rooms), {});
    EXPECT_EQ(got[0].rows, expected_slides().rows);
    rooms[0].expect_rows(expected_slides());
  }
}

// As ranks share it: the second share is long by itself.
TEST_F(LongVideo, IsEncodedShareByShare) {
  for (const int replicas : {1, 2}) {
    Engine engine = load_units({.data_parallel_size = replicas});
    const std::vector<PlannedItem> planned = engine.plan_items({slides()});
    const std::vector<ItemPiece> shares{{0, {.units = {0, 1}, .counts = false}},
                                        {0, {.units = {1, kUnits - 1}}}};
    const std::vector<Embedding> got = RowGather::encode(engine, {planned, shares}, {}, {});
    std::size_t begin = 0;
    for (const Embedding& share : got) {
      const auto expected = std::span(expected_slides().data).subspan(begin, share.data.size());
      EXPECT_TRUE(std::ranges::equal(share.data, expected));
      begin += share.data.size();
      EXPECT_EQ(share.timestamps.size(), kUnits) << "of the whole item";
    }
    EXPECT_EQ(begin, expected_slides().data.size());
    EXPECT_EQ(engine.stats().graph_hits, 1);
  }
}

TEST_F(LongVideo, WithoutRoomForItsRowsFailsAlone) {
  Engine engine = load_units();
  const std::vector<MediaItem> items{slides(), test::noise(64, 64, 1)};
  const Embedding image = engine.encode({&items[1], 1}).front();
  const std::vector<test::HostRoom> rooms{{kUnits * kUnitRows - 1, image.width},
                                          {image.rows, image.width}};
  const std::vector<Embedding> got =
      engine.encode(items, test::blocks_of(rooms), {}, {.on_error = OnError::kSkip});
  ASSERT_TRUE(got[0].error);
  EXPECT_TRUE(rooms[0].is_untouched());
  rooms[1].expect_rows(image);
}

TEST_F(LongVideo, IsNotKeptByACache) {
  Engine engine = load_units({.encoder_cache_bytes = kCacheBytes});
  const std::vector<MediaItem> items{slides(), test::noise(64, 64, 1), slides()};
  const std::vector<Embedding> got = engine.encode(items);
  for (const std::size_t i : {0, 2}) {
    EXPECT_TRUE(got[i].data == expected_slides().data);
    EXPECT_EQ(got[i].cache, CacheUse::kBypass);
  }
  EXPECT_EQ(got[1].cache, CacheUse::kMiss);
  const EncoderCacheStats stats = engine.stats().encoder_cache;
  EXPECT_EQ(stats.bypasses, 2);
  EXPECT_EQ(stats.misses, 1);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_EQ(engine.stats().graph_hits, 3);
}

TEST_F(LongVideo, EndsWithItsCall) {
  const MediaItem moving = video(kFrames, 1);
  Engine engine = load_units();
  std::stop_source source;
  const std::jthread client([&] {
    while (engine.stats().sub_batches < 2) std::this_thread::yield();
    source.request_stop();
  });
  test::expect_error(ErrorCode::kCancelled, "stopped", [&] {
    (void)engine.encode({&moving, 1}, {.bounds = {.stop = source.get_token()}});
  });
  EXPECT_LT(engine.stats().paths[0].live_rows, kUnits * kUnitRows);
  EXPECT_TRUE(engine.encode({&slides(), 1}).front().data == expected_slides().data);
}

TEST_F(LongVideo, LeavesOthersOfItsCallAlone) {
  Engine engine = load_units();
  const std::vector<MediaItem> items{test::noise(64, 64, 1), image_file("missing.jpg"), slides(),
                                     test::noise(96, 64, 2)};
  std::vector<std::int64_t> done;
  const EncodeOptions how{.on_error = OnError::kSkip,
                          .progress = [&](std::int64_t now, std::int64_t) { done.push_back(now); }};
  const std::vector<Embedding> got = engine.encode(items, how);
  EXPECT_TRUE(got[1].error);
  EXPECT_TRUE(got[2].data == expected_slides().data);
  for (const std::size_t i : {0, 3}) {
    EXPECT_EQ(got[i].data, engine.encode({&items[i], 1}).front().data);
  }
  EXPECT_EQ(done, (std::vector<std::int64_t>{1, 2, 4})) << "it comes before the others";
  EXPECT_EQ(engine.stats().graph_hits, 3 + 2);
}

TEST_F(LongVideo, WhoseLastFrameIsBrokenIsOneError) {
  const std::vector<std::uint16_t> grey(kSide * kSide * 3, 100);
  std::vector<MediaBytes> frames(kFrames,
                                 test::encode_png({.width = kSide, .height = kSide}, grey));
  frames.back() = test::png_that_claims(kSide, kSide);
  const std::vector<MediaItem> items{video_frames(frames, "video"), test::noise(64, 64, 1)};
  Engine engine = load_units();
  const Embedding image = engine.encode({&items[1], 1}).front();
  const std::vector<Embedding> got = engine.encode(items, {.on_error = OnError::kSkip});
  ASSERT_TRUE(got[0].error);
  EXPECT_TRUE(std::string(got[0].error->what()).starts_with("video[767]: "));
  EXPECT_EQ(got[0].rows, 0);
  EXPECT_TRUE(got[0].data.empty());
  EXPECT_EQ(got[1].data, image.data);
  EXPECT_GT(engine.stats().sub_batches, 2) << "it had begun";
  EXPECT_EQ(engine.stats().graph_hits, 2) << "what fails is none of those that were encoded";
  test::expect_error(ErrorCode::kCorruptData, "video[767]: ", [&] { (void)engine.encode(items); });
}

TEST_F(LongVideo, IsNotReadToItsEndWhenItIsRefused) {
  const std::vector<std::uint16_t> grey(kSide * kSide * 3, 100);
  std::vector<MediaBytes> frames(kFrames,
                                 test::encode_png({.width = kSide, .height = kSide}, grey));
  frames.back() = test::png_that_claims(kSide, kSide);
  const MediaItem item = video_frames(frames, "video");
  Engine engine = load_units();
  int asked = 0;
  EncodeOptions how{.on_error = OnError::kSkip};
  how.has_room = [&](const MediaItem&, std::int64_t) { return asked++ == 0; };  // then no more
  const Embedding refused = engine.encode({&item, 1}, how).front();
  EXPECT_EQ(asked, 2) << "before it is found to be long, and with its first units";
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code(), ErrorCode::kUnavailable) << refused.error->what();
  EXPECT_EQ(engine.stats().sub_batches, 0);
}

TEST_F(LongVideo, IsPrunedAsAWhole) {
  EngineOptions options{.packing = PackingPolicy::kUnits, .video_pruning_rate = 0.5};
  const Embedding got = load(options).encode({&slides(), 1}).front();
  options.num_threads = 5;  // whose windows have room for it
  const Embedding expected = load(options).encode({&slides(), 1}).front();
  EXPECT_EQ(got.rows, kUnits * kUnitRows / 2);
  EXPECT_EQ(got.retained, expected.retained);
  EXPECT_TRUE(got.data == expected.data);
}

/// The tiny Qwen2.5-VL with large frames: those of 25 have more bytes than a window, of which the
/// tower sees windows alone.
class LongVideoWithLargeFrames : public LongVideo {
 protected:
  void SetUp() override {
    if (media::video_status().starts_with("not used")) GTEST_SKIP() << media::video_status();
    const std::filesystem::path golden = test::golden_folder("qwen2_5_vl", "golden.safetensors");
    for (const char* const name : {"config.json", "video_preprocessor_config.json"}) {
      test::Json json = test::Json::parse(test::read_text((golden / name).string()));
      if (json.contains("size")) {
        json["size"]["shortest_edge"] = 1'900'000;
        json["size"]["longest_edge"] = 4'000'000;
      }
      if (json.contains("vision_config"))
        json["vision_config"]["fullatt_block_indexes"] = test::Json::array();
      std::ofstream(folder_ / name) << test::to_text(json);
    }
  }

  test::TemporaryDirectory folder_;
};

// Whose damage only decoding shows.
TEST_F(LongVideoWithLargeFrames, WithoutRoomForItsRowsIsNotDecoded) {
  std::vector<std::uint8_t> bytes =
      read_file(FOVEA_TEST_SOURCE_DIR "/tests/media/videos/ramp_h264.mp4", 1 << 20);
  bytes.resize(bytes.size() * 3 / 4);
  const MediaItem media = video_bytes(std::move(bytes), "clip", 10.0);
  test::RecordingLog log;
  EngineOptions options{.device = "cpu", .num_threads = 2, .dummy_weights = true};
  options.packing = PackingPolicy::kUnits;
  options.log = &log;
  Engine engine = Engine::load(folder_.path(), options);
  const std::vector<test::HostRoom> rooms{{1, engine.report().width}};
  const std::vector<Embedding> got =
      engine.encode(std::span(&media, 1), test::blocks_of(rooms), {}, {.on_error = OnError::kSkip});
  ASSERT_TRUE(got[0].error);
  EXPECT_TRUE(std::string(got[0].error->what()).ends_with("do not fit into a destination for 1"));
  EXPECT_EQ(log.count("video.frames_lost"), 0);
  (void)engine.encode({&media, 1});
  EXPECT_EQ(log.count("video.frames_lost"), 1);
}

// Of 25 frames that are to come, 1 and 2 can be read: a single unit.
TEST_F(LongVideoWithLargeFrames, TurnsOutToBeShortWhereFramesAreDamaged) {
  std::vector<std::uint8_t> bytes =
      read_file(FOVEA_TEST_SOURCE_DIR "/tests/media/videos/ramp_h264.mp4", 1 << 20);
  bytes.resize(bytes.size() * 3 / 4);
  const MediaItem media = video_bytes(std::move(bytes), "clip", 10.0);
  const auto encode = [&](PackingPolicy packing) {
    EngineOptions options{.device = "cpu", .num_threads = 2, .dummy_weights = true};
    options.packing = packing;
    options.encoder_cache_bytes = kCacheBytes;
    return Engine::load(folder_.path(), options).encode({&media, 1}).front();
  };
  const Embedding expected = encode(PackingPolicy::kGreedy);
  EXPECT_EQ(expected.num_frames, 2);
  const Embedding got = encode(PackingPolicy::kUnits);
  EXPECT_TRUE(got.data == expected.data);
  EXPECT_EQ(got.timestamps, expected.timestamps);
  EXPECT_EQ(got.cache, CacheUse::kMiss) << "a whole item is kept";
}

}  // namespace
}  // namespace fovea
