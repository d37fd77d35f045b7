// The batcher on an engine.
#include "fovea/batcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <random>
#include <thread>

#include "batcher/fake_engine.h"
#include "fovea/fovea.h"
#include "support/counted_file.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

MediaItem noise(std::int64_t width, std::int64_t height, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width * height * 3));
  for (std::uint8_t& value : rgb) value = static_cast<std::uint8_t>(random());
  return image_rgb(std::move(rgb), width, height, "noise " + std::to_string(seed));
}

std::vector<MediaItem> noises(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int64_t> side(32, 200);
  std::vector<MediaItem> items;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t width = side(random);
    items.push_back(noise(width, side(random), static_cast<unsigned>(random())));
  }
  return items;
}

/// Work for seconds, so that it still runs when a test that was not scheduled for a while goes on:
/// one image many times.
std::vector<MediaItem> long_work() {
  const auto rgb = std::make_shared<std::vector<std::uint8_t>>(64 * 64 * 3);
  return std::vector<MediaItem>(20000, image_rgb({*rgb, rgb}, 64, 64, "one of many"));
}
constexpr BatcherOptions kRoomForLongWork{.max_items = 40000};

class BatcherTest : public ::testing::Test {
 protected:
  const std::string model_ = test::golden_folder("qwen3_vl", "golden.safetensors");
  Engine engine_ = Engine::load(model_, {.device = "cpu", .num_threads = 2});
};

TEST_F(BatcherTest, GivesTheRowsOfTheEngineBitForBit) {
  Batcher batcher(engine_, {.max_delay = std::chrono::milliseconds(5)});
  constexpr RowDType kDTypes[] = {RowDType::kFloat32, RowDType::kBFloat16, RowDType::kFloat16};
  std::vector<std::jthread> clients;
  for (unsigned client = 0; client < 9; ++client) {
    clients.emplace_back([&, client] {
      const EncodeOptions how{.dtype = kDTypes[client % 3]};
      for (unsigned round = 0; round < 5; ++round) {
        const std::vector<MediaItem> items = noises(1 + client % 4, 10 * client + round);
        const std::vector<Embedding> rows = batcher.submit(items, how).rows.get();
        const std::vector<Embedding> alone = engine_.encode(items, how);
        ASSERT_EQ(rows.size(), alone.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
          EXPECT_EQ(rows[i].name, alone[i].name);
          EXPECT_EQ(rows[i].grid_thw, alone[i].grid_thw);
          EXPECT_EQ(rows[i].data, alone[i].data) << rows[i].name;
        }
      }
    });
  }
  clients.clear();
  EXPECT_EQ(batcher.stats().completed, 45);
}

TEST_F(BatcherTest, EncodesASmallRequestBesideALargeOne) {
  test::Replies replies;
  Batcher batcher(engine_, kRoomForLongWork);
  const Ticket large = batcher.submit(long_work(), {}, replies.keep("large"));
  while (batcher.stats().running_batches == 0) std::this_thread::yield();
  (void)batcher.submit(noises(1, 2), {}, replies.keep("small"));
  EXPECT_EQ(replies.of("small").items.size(), 1u);
  EXPECT_TRUE(batcher.cancel(large)) << "it was complete before the small one";
  EXPECT_EQ(replies.of("large").error.value().code(), ErrorCode::kCancelled);
}

TEST_F(BatcherTest, TakesItsBoundsFromTheGraphs) {
  const PackingPlan graphs = engine_.plan({});
  const Batcher batcher(engine_);
  EXPECT_EQ(batcher.options().max_batch_rows, graphs.token_budgets.front().back());
  EXPECT_EQ(batcher.options().max_batch_items, graphs.max_items_per_batch);
  Engine eager = Engine::load(
      model_, {.device = "cpu", .num_threads = 1, .graphs = {.cudagraph_mm_encoder = false}});
  const Batcher without(eager, {.max_batch_items = 3});
  EXPECT_EQ(without.options().max_batch_rows, 8192);
  EXPECT_EQ(without.options().max_batch_items, 3);
}

TEST_F(BatcherTest, KnowsRowsFromHeaders) {
  Batcher batcher(engine_, {.max_rows = 100});
  const std::int64_t rows = engine_.plan(std::vector<ItemSize>{{640, 480}}).items.front().rows;
  ASSERT_GT(rows, 100);
  test::expect_error(ErrorCode::kInvalidArgument, std::to_string(rows) + " rows",
                     [&] { (void)batcher.submit({noise(640, 480, 1)}); });
  EXPECT_EQ(batcher.stats().refused, 1);
  EXPECT_EQ(batcher.submit({noise(64, 64, 1)}).rows.get().size(), 1u);
}

TEST_F(BatcherTest, NoItemMakesRoomForAnother) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto claims = [](std::int64_t rows) {
    return precomputed_rows(std::vector<std::uint8_t>{}, RowDType::kFloat32, rows, 1, "claims");
  };
  Batcher batcher(engine_, {.max_rows = 100});
  const auto refuse = [&](std::vector<MediaItem> items) {
    test::expect_error(ErrorCode::kInvalidArgument, " rows, the batcher holds at most 100",
                       [&] { (void)batcher.submit(std::move(items)); });
  };
  refuse({claims(-1000), noise(640, 480, 1)});
  refuse({claims(kMost), claims(kMost)});
  EXPECT_EQ(batcher.stats().refused, 2);
}

TEST_F(BatcherTest, HasRoomForAVideoWhoseRowsNobodyKnows) {
  const MediaItem video = video_path(FOVEA_TEST_SOURCE_DIR "/tests/media/videos/ramp_h264.mp4");
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const BatcherOptions& options : {BatcherOptions{.max_rows = 1000, .max_batch_rows = 2000},
                                        {.max_rows = kMost, .max_batch_rows = kMost},
                                        {.max_rows = 1000, .max_batch_rows = 600}}) {
    Batcher batcher(engine_, options);
    std::atomic<std::int64_t> replies = 0;
    const Batcher::Done done = [&](const BatchReply&) { ++replies; };
    EXPECT_NO_THROW((void)batcher.submit(std::vector{video, video}, {}, done));
    const BatcherStats stats = batcher.stats();
    EXPECT_GE(stats.rows, 0);
    EXPECT_LE(stats.rows, options.max_rows);
    batcher.drain();
    EXPECT_EQ(replies, 1);
  }
}

TEST_F(BatcherTest, EncodesPlannedItemsAndPlansOthersOnce) {
  Batcher batcher(engine_);
  test::CountedFile photo(test::golden_folder("qwen3_vl", "golden.safetensors") +
                          "/images/photo_180x180.jpg");
  const std::vector<MediaItem> items{image_file(photo.path()), noise(64, 64, 1)};
  const std::vector<Embedding> alone = engine_.encode(items);
  EXPECT_EQ(photo.take_opens(), 2) << "for the header and the pixels";
  EXPECT_EQ(batcher.submit(items).rows.get()[0].data, alone[0].data);
  EXPECT_EQ(photo.take_opens(), 2) << "for the header and the pixels";
  const std::vector<PlannedItem> planned = engine_.plan_items(items);
  EXPECT_EQ(photo.take_opens(), 1);
  const std::vector<Embedding> rows = batcher.submit(planned).rows.get();
  EXPECT_EQ(photo.take_opens(), 1);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].data, alone[i].data);
}

TEST_F(BatcherTest, CountsBorrowedBytesToo) {
  Batcher batcher(engine_, {.max_bytes = 100});
  const std::vector<std::uint8_t> rgb(64 * 64 * 3);
  test::expect_error(ErrorCode::kInvalidArgument, "12288 bytes", [&] {
    (void)batcher.submit({image_rgb({rgb, nullptr}, 64, 64, "borrowed")});
  });
}

TEST_F(BatcherTest, RefusesWhatIsNoRequest) {
  Batcher batcher(engine_);
  const auto refuse = [&](std::vector<MediaItem> items, const EncodeOptions& how,
                          const Batcher::Done& done) {
    test::expect_error(ErrorCode::kInvalidArgument, "a request",
                       [&] { (void)batcher.submit(std::move(items), how, done); });
  };
  const Batcher::Done done = [](const BatchReply&) { ADD_FAILURE(); };
  refuse({}, {}, done);
  refuse({noise(32, 32, 1)}, {.progress = [](std::int64_t, std::int64_t) {}}, done);
  refuse({noise(32, 32, 1)}, {}, nullptr);
  const std::vector<Destinations> copies(1);
  refuse({noise(32, 32, 1)}, {.copies = copies}, done);
  for (const BatcherOptions& options : {BatcherOptions{.max_items = 0},
                                        {.max_bytes = -1},
                                        {.max_rows = 0},
                                        {.max_batch_rows = -1},
                                        {.max_delay = std::chrono::milliseconds(-1)},
                                        {.max_delay = std::chrono::microseconds::max()}}) {
    EXPECT_THROW(Batcher(engine_, options), Error);
  }
}

TEST_F(BatcherTest, HandsOutTheErrorOfABadItem) {
  Batcher batcher(engine_);
  auto good = batcher.submit({noise(64, 64, 1)});
  auto bad = batcher.submit({image_bytes({1, 2, 3}, "bad")});
  auto skipped = batcher.submit({image_bytes({1, 2, 3}, "bad"), noise(64, 64, 1)},
                                {.on_error = OnError::kSkip});
  test::expect_error(ErrorCode::kUnsupported, "bad: ", [&] { (void)bad.rows.get(); });
  EXPECT_EQ(good.rows.get().front().data, skipped.rows.get().back().data);
}

TEST_F(BatcherTest, EncodesAVideoWhoseRowsNobodyKnows) {
  const MediaItem video = video_path(FOVEA_TEST_SOURCE_DIR "/tests/media/videos/ramp_h264.mp4");
  std::vector<Embedding> alone;
  try {
    alone = engine_.encode({&video, 1});
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();  // no decoder
  }
  Batcher batcher(engine_, {.max_batch_rows = 5});
  EXPECT_EQ(batcher.submit({video}).rows.get().front().data, alone.front().data);
  batcher.stop();
  EXPECT_EQ(batcher.stats().batch_rows, 6) << "runs by itself";
}

TEST_F(BatcherTest, EndsARequestWhoseCallerStopsIt) {
  BatcherOptions options = kRoomForLongWork;
  options.max_delay = std::chrono::hours(1);
  Batcher batcher(engine_, options);
  std::stop_source stop;
  auto large = batcher.submit(long_work(), {.bounds = {.stop = stop.get_token()}});
  stop.request_stop();
  test::expect_error(ErrorCode::kCancelled, "cancelled", [&] { (void)large.rows.get(); });
  auto stopped = batcher.submit(noises(1, 1), {.bounds = {.stop = stop.get_token()}});
  test::expect_error(ErrorCode::kCancelled, "cancelled", [&] { (void)stopped.rows.get(); });
}

TEST_F(BatcherTest, DrainsUntilItsDeadline) {
  Batcher batcher(engine_, kRoomForLongWork);
  auto large = batcher.submit(long_work());
  auto small = batcher.submit(noises(3, 1));
  EXPECT_THROW(batcher.drain({.deadline = std::chrono::steady_clock::now()}), Error);
  EXPECT_TRUE(batcher.cancel(large.ticket));
  batcher.drain();
  EXPECT_EQ(small.rows.get().size(), 3u);
  test::expect_error(ErrorCode::kUnavailable, "ended", [&] { (void)batcher.submit(noises(1, 1)); });
}

TEST_F(BatcherTest, GivesUpWhatIsLeftWhenItGoes) {
  std::future<std::vector<Embedding>> rows;
  {
    Batcher first(engine_, kRoomForLongWork);
    Batcher batcher(std::move(first));
    rows = batcher.submit(long_work()).rows;
  }
  test::expect_error(ErrorCode::kCancelled, "cancelled", [&] { (void)rows.get(); });
}

/// A video that is encoded while it is decoded, in 5 takes at least: 768 different frames, of which
/// two are a unit of 81 rows.
class LongVideoOfABatcher : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 768 / 2 * 81;

  static const MediaItem& video() {
    static const MediaItem media = [] {
      constexpr std::int64_t kSide = 252;
      std::mt19937 random(5);
      std::vector<std::uint8_t> rgb(768 * kSide * kSide * 3);
      for (std::size_t i = 0; i < rgb.size(); i += 64) rgb[i] = static_cast<std::uint8_t>(random());
      return video_rgb(std::move(rgb), 768, kSide, kSide, 2.0, "video");
    }();
    return media;
  }
  [[nodiscard]] std::int64_t encoded_rows() const { return engine_.stats().paths[0].live_rows; }
  void wait_for_a_take() const {
    while (encoded_rows() == 0) std::this_thread::yield();
  }
  /// The work has ended in its midst, and nothing is held.
  void expect_stopped(Batcher& batcher) const {
    while (batcher.stats().running_batches > 0) std::this_thread::yield();
    EXPECT_LT(encoded_rows(), kRows);
    const BatcherStats stats = batcher.stats();
    EXPECT_EQ(stats.requests, 0);
    EXPECT_EQ(stats.bytes, 0);
    EXPECT_EQ(stats.rows, 0);
  }

  Engine engine_ = Engine::load(
      test::golden_folder("qwen2_5_vl", "golden.safetensors"),
      {.device = "cpu", .num_threads = 2, .packing = PackingPolicy::kUnits, .reuse_units = false});
};

TEST_F(LongVideoOfABatcher, LetsSmallRequestsPassBetweenItsTakes) {
  test::Replies replies;
  Batcher batcher(engine_);
  const Ticket large = batcher.submit({video()}, {}, replies.keep("video"));
  wait_for_a_take();
  for (const char* name : {"first", "second"}) {
    (void)batcher.submit(noises(1, 2), {}, replies.keep(name));
    EXPECT_EQ(replies.of(name).items.size(), 1U);
  }
  EXPECT_TRUE(batcher.cancel(large)) << "it was complete before them";
  EXPECT_EQ(replies.of("video").error.value().code(), ErrorCode::kCancelled);
  EXPECT_EQ(replies.order(), (std::vector<std::string>{"first", "second", "video"}));
  expect_stopped(batcher);
}

TEST_F(LongVideoOfABatcher, StopsWithinItsTakes) {
  const MediaItem image = noise(64, 64, 1);
  const Embedding expected = engine_.encode({&image, 1}).front();
  for (const std::string way : {"cancelled", "stopped"}) {
    Batcher batcher(engine_);
    std::stop_source client;
    const std::int64_t before = encoded_rows();
    Batcher::Pending large = batcher.submit({video()}, {.bounds = {.stop = client.get_token()}});
    while (encoded_rows() == before) std::this_thread::yield();
    Batcher::Pending small = batcher.submit({image});
    if (way == "cancelled") {
      EXPECT_TRUE(batcher.cancel(large.ticket));
    } else {
      client.request_stop();
    }
    test::expect_error(ErrorCode::kCancelled, "cancelled", [&] { (void)large.rows.get(); });
    EXPECT_EQ(small.rows.get().front().data, expected.data);
    expect_stopped(batcher);
    EXPECT_EQ(batcher.stats().cancelled, 1);
    EXPECT_EQ(batcher.stats().completed, 1);
  }
}

TEST_F(LongVideoOfABatcher, StopsAtItsDeadline) {
  Batcher batcher(engine_);
  const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  Batcher::Pending late = batcher.submit({video()}, {.bounds = {.deadline = soon}});
  test::expect_error(ErrorCode::kDeadline, "deadline", [&] { (void)late.rows.get(); });
  expect_stopped(batcher);
  EXPECT_EQ(batcher.stats().expired, 1);
}

TEST_F(LongVideoOfABatcher, EndsWithItsBatcher) {
  Batcher batcher(engine_);
  Batcher::Pending large = batcher.submit({video()});
  wait_for_a_take();
  batcher.stop();
  test::expect_error(ErrorCode::kCancelled, "cancelled", [&] { (void)large.rows.get(); });
  expect_stopped(batcher);
}

}  // namespace
}  // namespace fovea
