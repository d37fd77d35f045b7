// A long video in takes of a few units: their order, what ends them, and how far they run ahead.
#include "engine/unit_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/interrupt.h"
#include "engine/counting_model.h"
#include "graph/recording_log.h"
#include "media/test_images.h"
#include "media/video.h"
#include "models/load_model.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

using namespace std::chrono_literals;

/// Frames of 64 x 64 pixels, two for each unit.
class UnitStreamTest : public ::testing::Test {
 protected:
  [[nodiscard]] PrepareContext context() { return {*model_, options_, budget_, nullptr, &log_}; }

  static MediaItem clip(std::int64_t frames) {
    std::mt19937 random(7);
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(frames) * 64 * 64 * 3);
    std::ranges::generate(rgb, [&] { return static_cast<std::uint8_t>(random()); });
    return video_rgb(std::move(rgb), frames, 64, 64, 2.0, "clip");
  }
  /// So many encoded frames, of which one may be broken.
  static MediaItem encoded_clip(std::size_t frames, std::size_t broken = 1000) {
    const std::vector<std::uint16_t> samples(64 * 64 * 3, 100);
    std::vector<MediaBytes> all(frames, test::encode_png({.width = 64, .height = 64}, samples));
    if (broken < frames) all[broken] = test::png_that_claims(64, 64);
    return video_frames(std::move(all), "clip");
  }
  /// Of a clip of so many frames: the fewer there are, the larger they become.
  [[nodiscard]] std::size_t unit_bytes(std::int64_t frames) const {
    return model_->processor().plan_video(frames, 64, 64).unit_bytes[0];
  }

  /// All takes of a stream.
  [[nodiscard]] std::vector<PreparedMedia> takes_of(const MediaItem& media,
                                                    std::size_t most_bytes) {
    std::vector<PreparedMedia> takes;
    UnitStream stream(context(), media, {}, most_bytes);
    do {
      takes.push_back(stream.next());
    } while (!takes.back().is_last);
    return takes;
  }
  static std::vector<UnitRange> ranges_of(std::span<const PreparedMedia> takes) {
    std::vector<UnitRange> ranges;
    for (const PreparedMedia& take : takes) ranges.push_back(take.units);
    return ranges;
  }
  /// Takes that are the item together, of which the last tells what is known at the end.
  void expect_item(std::span<const PreparedMedia> takes, const MediaItem& media) {
    const PreparedMedia whole = prepare_media(context(), media);
    std::vector<std::uint8_t> pixels;
    for (const PreparedMedia& take : takes) {
      EXPECT_FALSE(take.error);
      EXPECT_EQ(take.item.plan.grid, whole.item.plan.grid);
      EXPECT_EQ(take.item.first_byte, pixels.size());
      pixels.insert(pixels.end(), take.item.pixels.begin(), take.item.pixels.end());
      const bool is_last = &take == &takes.back();
      EXPECT_EQ(take.is_last, is_last);
      EXPECT_EQ(take.timestamps, is_last ? whole.timestamps : std::vector<double>());
      EXPECT_EQ(take.times.resize_ms > 0, is_last);
    }
    EXPECT_TRUE(pixels == whole.item.pixels);
  }

  const std::unique_ptr<EncoderGraphModel> model_ = plan_model(
      checkpoint::read_hf_config(test::golden_folder("qwen3_vl", "golden.safetensors")), {});
  MediaOptions options_;
  DecodeBudget budget_{decode_budget_bytes({}, 1)};
  test::RecordingLog log_;
};

TEST_F(UnitStreamTest, TakesComeInOrderAndTheLastKnowsTheRest) {
  const MediaItem media = clip(15);
  const std::vector<PreparedMedia> takes = takes_of(media, 3 * unit_bytes(15));
  EXPECT_EQ(ranges_of(takes), (std::vector<UnitRange>{{0, 3}, {3, 3}, {6, 2}}));
  expect_item(takes, media);
}

TEST_F(UnitStreamTest, AllUnitsMayBeOneTake) {
  const MediaItem media = encoded_clip(6);
  const std::vector<PreparedMedia> takes = takes_of(media, 100 * unit_bytes(6));
  EXPECT_EQ(ranges_of(takes), (std::vector<UnitRange>{{0, 3}}));
  expect_item(takes, media);
}

TEST_F(UnitStreamTest, APlanThatIsThereIsUsed) {
  const test::CountingModel counting(*model_);
  const MediaItem media = clip(8);
  const std::optional<ItemPlan> plan = plan_ahead(*model_, media, options_);
  UnitStream stream({counting, options_, budget_}, media, {&*plan}, unit_bytes(8));
  while (!stream.next().is_last) continue;
  EXPECT_EQ(counting.plans(), 0);
}

TEST_F(UnitStreamTest, TheUnitsThatAreWantedComeAlone) {
  const MediaItem media = clip(15);
  const PreparedMedia whole = prepare_media(context(), media);
  const std::size_t unit = whole.item.plan.unit_bytes[0];
  UnitStream stream(context(), media, {&whole.item.plan, {3, 5}}, 2 * unit);
  std::vector<PreparedMedia> takes;
  do {
    takes.push_back(stream.next());
  } while (!takes.back().is_last);
  EXPECT_EQ(ranges_of(takes), (std::vector<UnitRange>{{3, 2}, {5, 2}, {7, 1}}));
  EXPECT_EQ(takes.back().timestamps, whole.timestamps) << "of all units";
  for (const PreparedMedia& take : takes) {
    const std::vector<std::uint8_t>& pixels = take.item.pixels;
    EXPECT_TRUE(
        std::equal(pixels.begin(), pixels.end(),
                   whole.item.pixels.begin() + static_cast<std::ptrdiff_t>(take.item.first_byte)));
  }
}

TEST_F(UnitStreamTest, AnErrorInTheMiddleIsTheLastTake) {
  const std::vector<PreparedMedia> takes = takes_of(encoded_clip(20, 13), unit_bytes(20));
  ASSERT_GT(takes.size(), 3U);
  for (std::size_t i = 0; i + 1 < takes.size(); ++i) {
    EXPECT_FALSE(takes[i].error);
    EXPECT_EQ(takes[i].units, (UnitRange{static_cast<std::int64_t>(i), 1}));
  }
  ASSERT_TRUE(takes.back().error);
  EXPECT_TRUE(std::string(takes.back().error->what()).starts_with("clip[13]: "));
  EXPECT_TRUE(takes.back().item.pixels.empty());
}

TEST_F(UnitStreamTest, WhatIsRefusedIsOneError) {
  options_.limits.max_video_frames = 19;
  const std::vector<PreparedMedia> takes = takes_of(encoded_clip(20), 1);
  ASSERT_EQ(takes.size(), 1U);
  ASSERT_TRUE(takes[0].error);
  EXPECT_STREQ(takes[0].error->what(), "clip: expected at most 19 frames, got 20");
}

// Frames 0 to 5, 7 and 8 can be read, and what is wrong with the others shows behind the sixth.
TEST_F(UnitStreamTest, ADamagedFileBeginsAgainWithItsFirstUnit) {
  if (media::video_status().starts_with("not used")) GTEST_SKIP() << media::video_status();
  std::vector<std::uint8_t> bytes =
      read_file(FOVEA_TEST_SOURCE_DIR "/tests/media/videos/ramp_h264.mp4", 1 << 20);
  bytes.resize(bytes.size() * 8 / 10);
  const MediaItem media = video_bytes(std::move(bytes), "clip", 10.0);
  const std::vector<PreparedMedia> takes = takes_of(media, 1);
  const auto begins = [](const PreparedMedia& take) { return take.units.first == 0; };
  EXPECT_EQ(std::ranges::count_if(takes, begins), 2);
  const std::span<const PreparedMedia> last = std::span(takes).last(4);
  EXPECT_EQ(ranges_of(last), (std::vector<UnitRange>{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
  expect_item(last, media);
}

TEST_F(UnitStreamTest, TheThreadStaysThreeTakesAhead) {
  const test::CountingModel counting(*model_);
  const MediaItem media = clip(40);
  UnitStream stream({counting, options_, budget_}, media, {}, unit_bytes(40));
  for (int taken = 0; taken < 5; ++taken) {
    const int most = 2 * (taken + 3);
    while (counting.frames() < most) std::this_thread::yield();
    std::this_thread::sleep_for(5ms);  // in which a thread that does not wait goes on
    ASSERT_EQ(counting.frames(), most);
    EXPECT_EQ(stream.next().units.first, taken);
  }
}

TEST_F(UnitStreamTest, NobodyHasToTakeWhatIsThere) {
  const MediaItem media = clip(40);
  for (int taken = 0; taken < 5; ++taken) {
    const test::CountingModel counting(*model_);
    {
      UnitStream stream({counting, options_, budget_}, media, {}, unit_bytes(40));
      for (int i = 0; i < taken; ++i) (void)stream.next();
      // Sometimes the thread waits by now, sometimes it is on its way.
      while (taken % 2 == 1 && counting.frames() < 2 * (taken + 3)) std::this_thread::yield();
    }
    EXPECT_LT(counting.frames(), 40);
  }
}

TEST_F(UnitStreamTest, AnInterruptEndsTheTakes) {
  const MediaItem media = clip(40);
  for (const bool late : {false, true}) {
    std::stop_source source;
    const Interrupt interrupt(source.get_token(),
                              late ? Interrupt::Clock::now() : Interrupt::Clock::time_point::max(),
                              "call");
    const InterruptScope scope(&interrupt);
    UnitStream stream(context(), media, {}, unit_bytes(40));
    if (!late) {
      (void)stream.next();
      source.request_stop();
    }
    int taken = 0;
    test::expect_error(late ? ErrorCode::kDeadline : ErrorCode::kCancelled, "", [&] {
      while (true) taken += static_cast<int>(stream.next().units.count);
    });
    EXPECT_LE(taken, 3);
  }
}

TEST_F(UnitStreamTest, AnInterruptEndsAWaitForTheNextTake) {
  const MediaItem media = encoded_clip(40);
  const DecodeBudget::Share all = budget_.take(decode_budget_bytes({}, 1));  // by somebody else
  std::stop_source source;
  const Interrupt interrupt(source.get_token(), Interrupt::Clock::time_point::max(), "call");
  const InterruptScope scope(&interrupt);
  UnitStream stream(context(), media, {}, unit_bytes(40));
  const std::jthread client([&] { source.request_stop(); });
  test::expect_error(ErrorCode::kCancelled, "", [&] { (void)stream.next(); });
}

}  // namespace
}  // namespace fovea
