// What prepare_media refuses before it takes memory or time, and what ends it early.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>
#include <thread>

#include "core/file.h"
#include "core/interrupt.h"
#include "engine/counting_model.h"
#include "engine/prepare.h"
#include "fovea/engine.h"
#include "media/video.h"
#include "models/load_model.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class PrepareLimits : public ::testing::Test {
 protected:
  [[nodiscard]] PreparedMedia prepare(const MediaItem& media) {
    return prepare_media({*model_, options_, budget_}, media);
  }
  void expect_refused(const MediaItem& media, ErrorCode code, const std::string& text) {
    const PreparedMedia prepared = prepare(media);
    ASSERT_TRUE(prepared.error) << text;
    EXPECT_EQ(prepared.error->code(), code) << prepared.error->what();
    EXPECT_THAT(prepared.error->what(), HasSubstr(text));
    EXPECT_EQ(prepared.item.pixels.capacity(), 0U);
    EXPECT_FALSE(plan_ahead(*model_, media, options_));
  }
  [[nodiscard]] static std::unique_ptr<EncoderGraphModel> model_with(const MediaOptions& options) {
    return plan_model(
        checkpoint::read_hf_config(test::golden_folder("qwen3_vl", "golden.safetensors")), options);
  }

  const std::string folder_ = test::golden_folder("qwen3_vl", "golden.safetensors");
  const std::string photo_ = folder_ + "/images/photo_180x180.jpg";
  MediaOptions options_;
  std::unique_ptr<EncoderGraphModel> model_ = model_with({});
  DecodeBudget budget_{decode_budget_bytes({}, 1)};
};

TEST_F(PrepareLimits, ItemsWithoutWhatTheirSourceNeedsAreRefused) {
  const std::vector<MediaItem::Source> bare{EncodedFile{},
                                            FrameFiles{},
                                            EncodedBytes{},
                                            EncodedFrames{},
                                            RgbFrames{},
                                            PixelValues{},
                                            EncodedFrames{{MediaBytes()}}};
  for (const Modality modality : {Modality::kImage, Modality::kVideo}) {
    for (const MediaItem::Source& source : bare) {
      SCOPED_TRACE(source.index());
      const MediaItem item{.modality = modality, .name = "bare", .source = source};
      expect_refused(item, ErrorCode::kInvalidArgument, "bare");
    }
  }
  expect_refused({.source = FrameFiles{{photo_, photo_}}}, ErrorCode::kInvalidArgument,
                 "an image has 1 frame, got 2");
}

TEST_F(PrepareLimits, AnEngineRefusesADefaultItem) {
  Engine engine = Engine::load(folder_, {.device = "cpu", .num_threads = 1});
  test::expect_error(ErrorCode::kInvalidArgument, "item: expected the path",
                     [&] { (void)engine.encode(std::vector<MediaItem>{MediaItem{}}); });
}

TEST_F(PrepareLimits, PatchesAreCountedBeforePixelsAreAllocated) {
  const MediaItem image = image_rgb(std::vector<std::uint8_t>(64 * 64 * 3), 64, 64, "small");
  options_.min_pixels = options_.max_pixels = 400'000'000;
  model_ = model_with(options_);
  expect_refused(image, ErrorCode::kInvalidArgument,
                 "small: expected at most 1048576 patches after resizing, got 15");
  options_.limits.max_patches_per_item = std::int64_t{1} << 40;
  options_.min_pixels = options_.max_pixels = 1'000'000'000;
  model_ = model_with(options_);
  expect_refused(image, ErrorCode::kInvalidArgument,
                 "small: 1 frame resized to 31648x31648: more pixels than one item can have");
}

TEST_F(PrepareLimits, PatchesOfEverySourceAreCounted) {
  options_.limits.max_patches_per_item = 23;
  expect_refused(image_file(photo_), ErrorCode::kInvalidArgument, "at most 23 patches");
  expect_refused(image_bytes(read_file(photo_, 1 << 20), "photo"), ErrorCode::kInvalidArgument,
                 "photo: expected at most 23 patches");
  expect_refused(video_path(folder_ + "/video_frames"), ErrorCode::kInvalidArgument,
                 "at most 23 patches");
  expect_refused(pixel_values(std::vector<std::uint8_t>(24 * 1536 * 4), RowDType::kFloat32, 24,
                              1536, {1, 4, 6}, "values"),
                 ErrorCode::kInvalidArgument, "values: expected at most 23 patches");
}

TEST_F(PrepareLimits, OfAVideoThePatchesAtOnceAreThoseOfAUnit) {
  const MediaItem clip =
      video_rgb(std::vector<std::uint8_t>(8 * 64 * 64 * 3), 8, 64, 64, 2.0, "clip");
  const ItemSpec& spec = prepare(clip).item.plan.spec;
  const std::int64_t of_unit = spec.units_on(0).patches;
  ASSERT_EQ(spec.input_rows, 4 * of_unit);
  options_.limits.max_patches_at_once = of_unit;
  EXPECT_FALSE(prepare(clip).error);
  options_.limits.max_patches_at_once = of_unit - 1;
  expect_refused(
      clip, ErrorCode::kInvalidArgument,
      cat("clip: expected at most ", of_unit - 1, " patches after resizing, got ", of_unit));
  options_.limits.max_patches_per_item = spec.input_rows - 1;
  expect_refused(clip, ErrorCode::kInvalidArgument,
                 cat("clip: expected at most ", spec.input_rows - 1, " patches"));
}

TEST_F(PrepareLimits, AVideoThatIsNotCutIsRefusedAsAWhole) {
  const std::vector<ItemSize> sizes{
      {.width_px = 64, .height_px = 64, .num_frames = 8, .modality = Modality::kVideo}};
  EngineOptions options{.device = "cpu", .num_threads = 1};
  options.packing = PackingPolicy::kUnits;
  const std::int64_t all = plan(folder_, sizes, options).items[0].patches;
  options.media.limits.max_patches_at_once = all - 1;
  EXPECT_EQ(plan(folder_, sizes, options).items[0].patches, all);
  EXPECT_EQ(Engine::load(folder_, options).plan(sizes).items[0].patches, all);
  const std::string refusal = cat("expected at most ", all - 1, " patches");
  options.packing = PackingPolicy::kGreedy;
  const auto plan_it = [&] { (void)plan(folder_, sizes, options); };
  const auto load_and_plan = [&] { (void)Engine::load(folder_, options).plan(sizes); };
  test::expect_error(ErrorCode::kInvalidArgument, refusal, plan_it);
  test::expect_error(ErrorCode::kInvalidArgument, refusal, load_and_plan);
  options.packing = PackingPolicy::kUnits;
  options.media.limits.max_patches_per_item = all - 1;
  test::expect_error(ErrorCode::kInvalidArgument, refusal, plan_it);
  test::expect_error(ErrorCode::kInvalidArgument, refusal, load_and_plan);
}

TEST_F(PrepareLimits, PlansAreRefusedAsItemsAre) {
  const std::vector<ItemSize> sizes{{.width_px = 64, .height_px = 64}};
  EngineOptions options{.device = "cpu"};
  options.media.min_pixels = options.media.max_pixels = 400'000'000;
  test::expect_error(ErrorCode::kInvalidArgument, "64x64: expected at most 1048576 patches",
                     [&] { (void)plan(folder_, sizes, options); });
}

TEST_F(PrepareLimits, FramesOfADirectoryHaveOneSize) {
  MediaItem frames = video_path(folder_ + "/video_frames");
  std::get<FrameFiles>(frames.source).paths.push_back(photo_);
  EXPECT_THAT(prepare(frames).error->what(), HasSubstr("frame 6 is 180x180 pixels, the first one"));
}

// Time.

TEST_F(PrepareLimits, AnItemThatMissesItsDeadlineIsAnErrorOfTheItem) {
  options_.limits.decode_deadline = std::chrono::milliseconds(1);
  const std::vector<std::uint8_t> frames(std::size_t{50} * 640 * 480 * 3);
  const PreparedMedia late = prepare(video_rgb(frames, 50, 640, 480, 2.0, "long"));
  ASSERT_TRUE(late.error);
  EXPECT_EQ(late.error->code(), ErrorCode::kDeadline);
  EXPECT_THAT(late.error->what(), StartsWith("long: not done before its deadline"));
}

TEST_F(PrepareLimits, ADeadlineBehindTheEndOfTheClockIsNone) {
  options_.limits.decode_deadline = std::chrono::milliseconds::max();
  const PreparedMedia photo = prepare(image_file(photo_));
  EXPECT_FALSE(photo.error) << photo.error->what();
}

TEST_F(PrepareLimits, WhatEndsTheCallIsNoErrorOfTheItem) {
  options_.limits.decode_deadline = std::chrono::minutes(1);
  std::stop_source source;
  source.request_stop();
  const Interrupt stopped(source.get_token(), Interrupt::Clock::time_point::max(), "call");
  const Interrupt late({}, Interrupt::Clock::now() - std::chrono::seconds(1), "call");
  {
    const InterruptScope scope(&stopped);
    test::expect_error(ErrorCode::kCancelled, "stopped",
                       [&] { (void)prepare(image_file(photo_)); });
  }
  const InterruptScope scope(&late);
  test::expect_error(ErrorCode::kDeadline, "call: ", [&] { (void)prepare(image_file(photo_)); });
}

TEST_F(PrepareLimits, WaitingForMemoryDoesNotCountAgainstAnItem) {
  options_.limits.decode_deadline = std::chrono::seconds(1);
  std::optional<DecodeBudget::Share> all = budget_.take(std::size_t{448} << 20);
  std::jthread other([&] {
    while (budget_.num_waiting() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    all.reset();
  });
  const PreparedMedia photo = prepare(image_file(photo_));
  EXPECT_FALSE(photo.error) << photo.error->what();
}

// Videos in memory.

class VideoLimits : public PrepareLimits {
 protected:
  void SetUp() override {
    if (media::video_status().starts_with("not used")) GTEST_SKIP() << media::video_status();
  }
  const std::string clip_ =
      std::string(FOVEA_TEST_SOURCE_DIR) + "/tests/media/videos/ramp_h264.mp4";
};

TEST_F(VideoLimits, AContainerInMemoryIsTheVideoOfItsFile) {
  const PreparedMedia file = prepare(video_path(clip_));
  const PreparedMedia bytes = prepare(video_bytes(read_file(clip_, 1 << 20), "clip"));
  ASSERT_FALSE(bytes.error) << bytes.error->what();
  EXPECT_EQ(bytes.item.plan.num_frames, file.item.plan.num_frames);
  EXPECT_EQ(bytes.item.pixels, file.item.pixels);
  EXPECT_EQ(bytes.timestamps, file.timestamps);
  EXPECT_FALSE(bytes.timestamps.empty());
}

TEST_F(VideoLimits, PatchesOfAContainerAreCountedBeforeItIsDecoded) {
  options_.limits.max_patches_per_item = 23;
  expect_refused(video_path(clip_), ErrorCode::kInvalidArgument, "at most 23 patches");
}

TEST_F(VideoLimits, AContainerIsDecodedIfItsRowsHaveRoom) {
  const PreparedMedia whole = prepare(video_path(clip_));
  const ItemPlan& plan = whole.item.plan;
  for (const std::int64_t missing : {0, 1}) {
    const test::CountingModel counting(*model_);
    const std::int64_t room = plan.spec.out_rows - missing;
    const auto has_room = [&](std::int64_t rows) { return rows <= room; };
    const PreparedMedia got =
        prepare_media({counting, options_, budget_}, video_path(clip_), {.has_room = has_room});
    EXPECT_FALSE(got.error);
    EXPECT_EQ(got.item.plan.spec.out_rows, plan.spec.out_rows);
    EXPECT_EQ(counting.frames(), missing == 0 ? plan.num_frames : 0);
    EXPECT_EQ(got.item.pixels.empty(), missing > 0);
  }
}

}  // namespace
}  // namespace fovea
