// Rows that go to host memory of the caller are those that encode() returns, and nothing else there
// is written.
#include <gtest/gtest.h>

#include <array>

#include "core/check.h"
#include "engine/cached/noise.h"
#include "engine/rows/host_room.h"
#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

using test::blocks_of;
using test::HostRoom;
using test::noise;
using test::rooms_for;

std::string golden_model(const std::string& family) {
  return test::golden_folder(family, "golden.safetensors");
}

MediaItem clip(std::int64_t num_frames, std::int64_t width, std::int64_t height) {
  MediaItem item = noise(width, height * num_frames, 9);
  item.modality = Modality::kVideo;
  auto& rgb = std::get<RgbFrames>(item.source);
  rgb.num_frames = num_frames;
  rgb.height_px = height;
  item.name = "clip";
  return item;
}

bool takes_videos(const Engine& engine) { return engine.report().videos; }

std::vector<MediaItem> mixed_items(const Engine& engine) {
  std::vector<MediaItem> items{noise(90, 120, 1), noise(64, 64, 2), noise(300, 200, 3)};
  if (takes_videos(engine)) items.push_back(clip(4, 64, 96));
  return items;
}

void expect_same_rows(Engine& engine, std::span<const MediaItem> items, RowDType dtype,
                      std::int64_t gap) {
  const std::vector<Embedding> expected = engine.encode(items, {.dtype = dtype});
  const std::vector<HostRoom> rooms = rooms_for(expected, dtype, gap, 2);
  const std::vector<Embedding> got = engine.encode(items, blocks_of(rooms), {});
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    test::expect_described(got[i], expected[i]);
    EXPECT_EQ(got[i].dtype, dtype);
    rooms[i].expect_rows(expected[i]);
  }
}

class EncodeToFamily : public ::testing::TestWithParam<std::string> {};

/// Where rows of an item go.
struct Place {
  RowDType dtype;
  std::int64_t gap;
};

constexpr std::array<Place, 4> kPlaces{{{RowDType::kFloat32, 0},
                                        {RowDType::kFloat32, 24},
                                        {RowDType::kBFloat16, 0},
                                        {RowDType::kFloat16, 2}}};

// Each item of a call goes to a place of its own; two calls have every place.
TEST_P(EncodeToFamily, GivesTheRowsOfEncodeInEveryDtypeAndStride) {
  const auto load = [](int replicas) {
    return Engine::load(golden_model(GetParam()),
                        {.device = "cpu", .data_parallel_size = replicas, .num_threads = 3});
  };
  Engine one = load(1);
  Engine three = load(3);
  const std::vector<MediaItem> items = mixed_items(one);
  for (const std::size_t first : {0, 2}) {
    std::vector<Embedding> expected;
    std::vector<HostRoom> rooms;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Place& place = kPlaces[(first + i) % kPlaces.size()];
      expected.push_back(one.encode({&items[i], 1}, {.dtype = place.dtype}).front());
      rooms.emplace_back(expected[i].rows + 2, expected[i].width, place.dtype, place.gap);
    }
    for (Engine* engine : {&one, &three}) {
      std::vector<HostRoom> own = rooms;
      const std::vector<Embedding> got = engine->encode(items, blocks_of(own), {});
      ASSERT_EQ(got.size(), items.size());
      for (std::size_t i = 0; i < items.size(); ++i) {
        test::expect_described(got[i], expected[i]);
        EXPECT_EQ(got[i].dtype, expected[i].dtype);
        own[i].expect_rows(expected[i]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, EncodeToFamily,
                         ::testing::ValuesIn(test::golden_families(FOVEA_TEST_GOLDEN_DIR,
                                                                   "golden.safetensors")),
                         [](const auto& name) { return name.param; });

class EncodeTo : public ::testing::Test {
 protected:
  static Engine load(const EngineOptions& more = {}) {
    EngineOptions options = more;
    options.device = "cpu";
    options.num_threads = 2;
    return Engine::load(golden_model("qwen3_vl"), options);
  }
  void refused(std::span<const MediaItem> items, std::span<const RowBlock> blocks,
               const std::string& part, const CallerStream& stream = {}) {
    test::expect_error(ErrorCode::kInvalidArgument, part,
                       [&] { (void)engine_.encode(items, blocks, stream); });
    EXPECT_EQ(engine_.stats().sub_batches, 0) << "refused before any work";
  }

  Engine engine_ = load();
};

TEST_F(EncodeTo, ItemsOfACallMayHaveDtypesOfTheirOwn) {
  const std::vector<MediaItem> items{noise(64, 64, 1), noise(64, 64, 1), noise(64, 64, 1)};
  const std::vector<HostRoom> rooms{
      {4, 256, RowDType::kFloat16}, {4, 256}, {5, 256, RowDType::kBFloat16, 64}};
  (void)engine_.encode(items, blocks_of(rooms), {});
  for (const HostRoom& room : rooms) {
    room.expect_rows(engine_.encode({&items[0], 1}, {.dtype = room.block().dtype}).front());
  }
}

TEST_F(EncodeTo, RowsOfItemsMayLieSideBySide) {
  const std::vector<MediaItem> items{noise(64, 64, 1), noise(64, 64, 2)};
  const std::vector<Embedding> expected = engine_.encode(items);
  std::vector<float> both(4 * 512);
  const std::vector<RowBlock> blocks{{.data = both.data(), .row_stride_bytes = 2048, .rows = 4},
                                     {.data = &both[256], .row_stride_bytes = 2048, .rows = 4}};
  (void)engine_.encode(items, blocks, {});
  for (std::int64_t row = 0; row < 4; ++row) {
    const auto at = static_cast<std::size_t>(row * 512);
    EXPECT_EQ(both[at + 7], expected[0].at(row, 7));
    EXPECT_EQ(both[at + 256 + 7], expected[1].at(row, 7));
  }
}

TEST_F(EncodeTo, LongCallsTakeSeveralWindows) {
  std::vector<MediaItem> items;
  for (int i = 0; i < 150; ++i) items.push_back(noise(32 + 32 * (i % 3), 64, 5));
  expect_same_rows(engine_, items, RowDType::kFloat32, 0);
}

TEST_F(EncodeTo, RowsFromTheCacheAreThose) {
  Engine engine = load({.encoder_cache_bytes = std::int64_t{64} << 20});
  const std::vector<MediaItem> items{noise(90, 120, 1), noise(64, 64, 2), noise(90, 120, 1),
                                     clip(2, 64, 64)};
  for (int turn = 0; turn < 2; ++turn) {
    expect_same_rows(engine, items, RowDType::kBFloat16, 8);
    expect_same_rows(engine, items, RowDType::kFloat32, 0);
  }
  EXPECT_EQ(engine.stats().encoder_cache.misses, 3) << "whatever dtype they are wanted in";
}

TEST_F(EncodeTo, PrunedVideosNeedRoomForWhatIsLeft) {
  Engine engine = load({.video_pruning_rate = 0.5});
  const std::vector<MediaItem> items{clip(8, 64, 64), noise(64, 64, 2)};
  const std::vector<Embedding> expected = engine.encode(items);
  EXPECT_TRUE(expected[0].retained);
  const std::vector<HostRoom> rooms = rooms_for(expected, RowDType::kFloat32);
  const std::vector<Embedding> got = engine.encode(items, blocks_of(rooms), {});
  for (std::size_t i = 0; i < got.size(); ++i) {
    test::expect_described(got[i], expected[i]);
    rooms[i].expect_rows(expected[i]);
  }
}

TEST_F(EncodeTo, FinishedRowsGoToTheirDestinations) {
  const MediaItem image = noise(64, 64, 1);
  const Embedding known = engine_.encode({&image, 1}).front();
  HostRoom source(4, 256, RowDType::kFloat32, 32);
  (void)engine_.encode({&image, 1}, {&source.block(), 1}, {});
  const std::vector<MediaItem> items{precomputed(known), image,
                                     precomputed_rows(source.block(), 256, "block")};
  const std::vector<HostRoom> rooms{{4, 256}, {4, 256}, {6, 256, RowDType::kFloat32, 16}};
  const std::vector<Embedding> got = engine_.encode(items, blocks_of(rooms), {});
  for (const HostRoom& room : rooms) room.expect_rows(known);
  EXPECT_EQ(got[2].name, "block");
  EXPECT_EQ(engine_.encode({&items[2], 1}).front().data, known.data);
  EXPECT_EQ(engine_.stats().miss_reasons.at("precomputed"), 3);
}

TEST_F(EncodeTo, NothingIsWrittenForItemsThatFail) {
  const std::vector<MediaItem> items{noise(64, 64, 1), image_file("missing.jpg"), noise(90, 120, 3),
                                     noise(96, 64, 2)};
  const std::vector<HostRoom> rooms{{4, 256}, {9, 256}, {1, 256}, {6, 256}};
  for (const bool cached : {false, true}) {
    Engine engine = load({.encoder_cache_bytes = cached ? 1 << 24 : 0});
    const std::vector<Embedding> got =
        engine.encode(items, blocks_of(rooms), {}, {.on_error = OnError::kSkip});
    const std::vector<Embedding> expected = engine.encode(items, {.on_error = OnError::kSkip});
    rooms[0].expect_rows(expected[0]);
    rooms[3].expect_rows(expected[3]);
    EXPECT_TRUE(rooms[1].is_untouched());
    EXPECT_TRUE(rooms[2].is_untouched());
    EXPECT_EQ(got[1].error->code(), ErrorCode::kNotFound);
    ASSERT_TRUE(got[2].error);
    EXPECT_EQ(std::string(got[2].error->what()),
              cat(got[2].name, ": 12 rows do not fit into a destination for 1"));
    EXPECT_EQ(got[2].rows, 0);
  }
}

TEST_F(EncodeTo, ADestinationThatIsTooSmallIsFoundBeforeAnyWork) {
  const std::vector<MediaItem> items{noise(64, 64, 1), noise(90, 120, 3)};
  const std::vector<HostRoom> rooms{{4, 256}, {11, 256}};
  refused(items, blocks_of(rooms), "12 rows do not fit into a destination for 11");
  EXPECT_TRUE(rooms[0].is_untouched());
}

TEST_F(EncodeTo, EveryItemNeedsADestination) {
  const std::vector<MediaItem> items{noise(64, 64, 1), noise(64, 64, 2)};
  const HostRoom room(4, 256);
  refused(items, {&room.block(), 1}, "2 items need as many destinations, got 1");
  EXPECT_TRUE(engine_.encode(std::vector<MediaItem>{}, std::span<const RowBlock>{}, {}).empty());
}

TEST_F(EncodeTo, DestinationsThatCannotBeWrittenAreRefused) {
  const std::vector<MediaItem> items{noise(64, 64, 1), noise(64, 64, 2)};
  HostRoom room(8, 256);
  const auto with_second = [&](RowBlock second) {
    RowBlock first = room.block();
    first.rows = 4;
    return std::vector<RowBlock>{first, second};
  };
  RowBlock block = room.block();
  refused(items, with_second(block), "destination 1 overlaps destination 0");
  block.device = 0;
  refused(items, with_second(block),
          "destination 1: an engine on the CPU does not reach memory of cuda:0");
  refused(items, with_second({.rows = 4}), "destination 1: no memory for 4 rows");
  const MediaItem source = precomputed_rows(room.block(), 256, "source");
  refused(std::vector{source}, {&room.block(), 1}, "overlaps");
}

TEST_F(EncodeTo, AStreamNeedsAGpu) {
  const MediaItem item = noise(64, 64, 1);
  const HostRoom room(4, 256);
  refused({&item, 1}, {&room.block(), 1}, "a stream of cuda:0 needs an engine on a GPU",
          {.device = 0});
}

TEST_F(EncodeTo, WhatWasWrittenElsewhereIsNotInTheResult) {
  const MediaItem item = noise(64, 64, 1);
  const HostRoom room(4, 256);
  const Embedding got = engine_.encode({&item, 1}, {&room.block(), 1}, {}).front();
  EXPECT_FALSE(got.has_data());
  const auto refuses = [&](auto&& call) {
    test::expect_error(ErrorCode::kInvalidArgument, "in memory of the caller", call);
  };
  refuses([&] { (void)got.at(0, 0); });
  refuses([&] { (void)precomputed(got); });
  refuses([&] { save_safetensors("unused.safetensors", {&got, 1}, {}); });
}

}  // namespace
}  // namespace fovea
