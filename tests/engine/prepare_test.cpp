// From sources to resized bytes: what each source becomes, and what a failure leaves behind.
#include "engine/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.h"
#include "engine/counting_model.h"
#include "media/decode_image.h"
#include "models/load_model.h"
#include "support/golden.h"

namespace fovea {
namespace {

using test::CountingModel;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Prepare : public ::testing::Test {
 protected:
  [[nodiscard]] PreparedMedia prepare(const MediaItem& media) const {
    DecodeBudget budget(decode_budget_bytes(options_.limits, 1));
    return prepare_media({*model_, options_, budget}, media);
  }
  /// The message of an item that cannot be prepared.
  [[nodiscard]] std::string refusal(const MediaItem& media) const {
    const PreparedMedia prepared = prepare(media);
    EXPECT_TRUE(prepared.item.pixels.empty() && prepared.item.plan.pixel_bytes == 0)
        << "a failed item must hold nothing";
    return prepared.error ? prepared.error->what() : "no error";
  }

  const std::string folder_ = test::golden_folder("qwen3_vl", "golden.safetensors");
  const std::string photo_ = folder_ + "/images/photo_180x180.jpg";
  const std::unique_ptr<EncoderGraphModel> model_ =
      plan_model(checkpoint::read_hf_config(folder_), {});
  MediaOptions options_;
};

TEST_F(Prepare, AFileItsBytesAndItsPixelsGiveTheSame) {
  const std::vector<std::uint8_t> bytes = read_file(photo_, 1 << 20);
  const media::Image image = media::decode_image(bytes, "photo", options_);
  const PreparedMedia file = prepare(image_file(photo_));
  ASSERT_FALSE(file.error);
  EXPECT_EQ(file.item.plan.source_width_px, 180);
  EXPECT_EQ(file.item.pixels.size(), file.item.plan.pixel_bytes);
  EXPECT_EQ(prepare(image_bytes(bytes, "photo")).item.pixels, file.item.pixels);
  EXPECT_EQ(prepare(image_rgb(image.rgb, 180, 180, "photo")).item.pixels, file.item.pixels);
}

TEST_F(Prepare, SizesAreKnownAheadWhereverNothingMustBeDecoded) {
  const std::vector<std::uint8_t> bytes = read_file(photo_, 1 << 20);
  MediaItem values = pixel_values({}, RowDType::kFloat32, 24, 1536, {1, 4, 6}, "values");
  for (const MediaItem& media :
       {image_file(photo_), image_bytes(bytes, "bytes"), video_path(folder_ + "/video_frames"),
        image_rgb(std::vector<std::uint8_t>(96 * 64 * 3), 96, 64, "image"),
        video_rgb(std::vector<std::uint8_t>(3 * 96 * 64 * 3), 3, 96, 64, 2.0, "clip")}) {
    const std::optional<ItemPlan> ahead = plan_ahead(*model_, media, options_);
    ASSERT_TRUE(ahead) << media.name;
    const ItemPlan plan = prepare(media).item.plan;
    EXPECT_EQ(ahead->modality, plan.modality);
    EXPECT_EQ(ahead->grid, plan.grid) << media.name;
    EXPECT_EQ(ahead->spec.path_tokens, plan.spec.path_tokens);
  }
  EXPECT_EQ(plan_ahead(*model_, values, options_)->spec.path_tokens[0], 6);
}

TEST_F(Prepare, APlanIsMadeOnce) {
  DecodeBudget budget(decode_budget_bytes(options_.limits, 1));
  const std::vector<float> white(4 * 1536, 1.0F);
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(white.data());
  const std::vector<MediaItem> items{
      image_file(photo_),
      image_bytes(read_file(photo_, 1 << 20), "bytes"),
      image_rgb(std::vector<std::uint8_t>(96 * 64 * 3), 96, 64, "image"),
      video_path(folder_ + "/video_frames"),
      video_rgb(std::vector<std::uint8_t>(3 * 96 * 64 * 3), 3, 96, 64, 2.0, "clip"),
      pixel_values({{bytes, white.size() * sizeof(float)}, nullptr}, RowDType::kFloat32, 4, 1536,
                   {1, 2, 2}, "values")};
  for (const MediaItem& media : items) {
    SCOPED_TRACE(media.name);
    const CountingModel ahead(*model_);
    const std::optional<ItemPlan> plan = plan_ahead(ahead, media, options_);
    ASSERT_TRUE(plan);
    EXPECT_EQ(ahead.plans(), 1);
    const PreparedMedia by_plan =
        prepare_media({ahead, options_, budget}, media, {.ahead = {&*plan}});
    EXPECT_EQ(ahead.plans(), 1);
    const CountingModel later(*model_);
    EXPECT_EQ(prepare_media({later, options_, budget}, media).item.pixels, by_plan.item.pixels);
    EXPECT_EQ(later.plans(), 1);
  }
}

TEST_F(Prepare, APlanOfAnotherSizeIsMadeAnew) {
  DecodeBudget budget(decode_budget_bytes(options_.limits, 1));
  const PreparedMedia photo = prepare(image_file(photo_));
  for (const MediaItem& other :
       {image_rgb(std::vector<std::uint8_t>(96 * 64 * 3), 96, 64, "smaller"),
        image_rgb(std::vector<std::uint8_t>(640 * 480 * 3), 640, 480, "larger")}) {
    const std::optional<ItemPlan> stale = plan_ahead(*model_, other, options_);
    const PreparedMedia prepared =
        prepare_media({*model_, options_, budget}, image_file(photo_), {.ahead = {&*stale}});
    EXPECT_EQ(prepared.item.plan.grid, photo.item.plan.grid);
    EXPECT_EQ(prepared.item.pixels, photo.item.pixels);
  }
}

TEST_F(Prepare, UnitsOfAVideoThatAreWantedAloneNeedNoOtherFrames) {
  DecodeBudget budget(decode_budget_bytes(options_.limits, 1));
  const std::vector<std::uint8_t> bytes = read_file(photo_, 1 << 20);
  std::vector<MediaBytes> frames(8, bytes);
  const PreparedMedia whole = prepare(video_frames(frames, "clip"));
  frames[3] = {1, 2, 3};
  frames[6] = {1, 2, 3};
  const ItemAhead ahead{&whole.item.plan, {2, 1}};  // frames 4 and 5
  const PreparedMedia part =
      prepare_media({*model_, options_, budget}, video_frames(frames, "clip"), {.ahead = ahead});
  ASSERT_FALSE(part.error);
  EXPECT_EQ(part.units, ahead.units);
  EXPECT_EQ(part.item.first_byte, 2 * whole.item.plan.unit_bytes[0]);
  EXPECT_TRUE(std::ranges::equal(
      part.item.pixels,
      std::span(whole.item.pixels).subspan(part.item.first_byte, whole.item.plan.unit_bytes[0])));
  EXPECT_EQ(part.timestamps, whole.timestamps);
  const ItemAhead all{&whole.item.plan, {0, 4}};
  EXPECT_TRUE(
      prepare_media({*model_, options_, budget}, video_frames(frames, "clip"), {.ahead = all})
          .error);
}

TEST_F(Prepare, SizesOfTheRestAreNotKnownAhead) {
  MediaItem container = image_file(photo_);
  container.modality = Modality::kVideo;
  const MediaItem no_grid = pixel_values({}, RowDType::kFloat32, 24, 1536, {}, "values");
  for (const MediaItem& media :
       {container, no_grid, precomputed_rows({}, RowDType::kFloat32, 0, 256, "rows"),
        image_file("missing.jpg"), image_bytes({1, 2, 3}, "broken.png"),
        image_rgb(std::vector<std::uint8_t>(900), 300, 1, "line")}) {
    EXPECT_FALSE(plan_ahead(*model_, media, options_)) << media.name;
  }
}

TEST_F(Prepare, OnlyStagesThatRanTookTime) {
  const PreparedMedia file = prepare(image_file(photo_));
  EXPECT_GT(file.times.read_ms, 0);
  EXPECT_GT(file.times.decode_ms, 0);
  EXPECT_GT(file.times.resize_ms, 0);
  const PreparedMedia pixels =
      prepare(image_rgb(std::vector<std::uint8_t>(64 * 64 * 3), 64, 64, ""));
  EXPECT_EQ(pixels.times.read_ms, 0);
  EXPECT_EQ(pixels.times.decode_ms, 0);
}

TEST_F(Prepare, ADirectoryOfFramesIsAVideoOfThem) {
  const PreparedMedia video = prepare(video_path(folder_ + "/video_frames"));
  ASSERT_FALSE(video.error);
  EXPECT_EQ(video.item.plan.modality, Modality::kVideo);
  EXPECT_EQ(video.item.plan.num_frames, 6);
  EXPECT_EQ(video.item.pixels.size(), video.item.plan.pixel_bytes);
  EXPECT_EQ(video.timestamps, (std::vector<double>{0.25, 1.25, 2.25})) << "2 frames per second";
}

TEST_F(Prepare, FramesInMemoryAreTheVideoOfTheirFiles) {
  std::vector<MediaBytes> frames;
  for (const std::string& path : images_in(folder_ + "/video_frames")) {
    frames.emplace_back(read_file(path, 1 << 20));
  }
  const MediaItem clip = video_frames(frames, "clip");
  const PreparedMedia video = prepare(clip);
  ASSERT_FALSE(video.error);
  const PreparedMedia files = prepare(video_path(folder_ + "/video_frames"));
  EXPECT_EQ(video.item.pixels, files.item.pixels);
  EXPECT_EQ(video.timestamps, files.timestamps);
  EXPECT_EQ(plan_ahead(*model_, clip, options_)->grid, video.item.plan.grid);
  frames[3] = {1, 2, 3};
  EXPECT_THAT(refusal(video_frames(frames, "clip")), StartsWith("clip[3]: "));
  frames[3] = read_file(photo_, 1 << 20);
  EXPECT_THAT(refusal(video_frames(frames, "clip")), StartsWith("clip: frame 3 is 180x180"));
  frames[3] = {};
  EXPECT_EQ(refusal(video_frames(frames, "clip")),
            "clip[3]: expected an encoded image, got no bytes");
  options_.limits.max_image_bytes = 99;
  EXPECT_THAT(refusal(clip), StartsWith("clip[0]: "));
  options_.limits.max_video_frames = 5;
  EXPECT_EQ(refusal(clip), "clip: expected at most 5 frames, got 6");
  options_.limits = {.max_frame_pixels = 100};
  EXPECT_THAT(refusal(clip), StartsWith("clip: expected frames of at most 100 pixels, got "));
  options_.limits = {.max_video_pixels = 100};
  EXPECT_THAT(refusal(clip),
              StartsWith("clip: expected at most 100 pixels in all frames, got 6 of"));
}

TEST_F(Prepare, FinishedRowsAreCheckedAndNothingElse) {
  const std::int64_t width = model_->graph_spec().out_width;
  const std::vector<std::uint8_t> bytes(static_cast<std::size_t>(2 * width) * sizeof(float));
  const PreparedMedia rows = prepare(precomputed_rows(bytes, RowDType::kFloat32, 2, width, "rows"));
  EXPECT_FALSE(rows.error);
  EXPECT_TRUE(rows.item.pixels.empty());
  EXPECT_THAT(refusal(precomputed_rows(bytes, RowDType::kFloat32, 3, width, "rows")),
              StartsWith("rows: 3 rows of 256 x float32 do not take 2048 bytes"));
}

TEST_F(Prepare, LimitsHoldBeforeAnythingIsReadOrDecoded) {
  options_.limits.max_image_bytes = 99;
  options_.limits.max_video_frames = 1;
  EXPECT_EQ(refusal(image_bytes(std::vector<std::uint8_t>(100), "large")),
            "large: 100 bytes, the limit is 99");
  EXPECT_THAT(refusal(image_file(photo_)), HasSubstr("99"));
  const MediaItem frames{.modality = Modality::kVideo,
                         .name = "clip",
                         .source = FrameFiles{{"missing_0.png", "missing_1.png"}}};
  EXPECT_EQ(refusal(frames), "clip: expected at most 1 frames, got 2");
}

TEST_F(Prepare, MessagesBeginWithTheItemOrItsFileOnce) {
  EXPECT_THAT(refusal(image_file("missing.jpg")), StartsWith("missing.jpg: "));
  EXPECT_THAT(refusal(image_file("missing.jpg")),
              ::testing::Not(HasSubstr("missing.jpg: missing")));
  EXPECT_THAT(refusal(image_rgb(std::vector<std::uint8_t>(900), 300, 1, "line")),
              StartsWith("line: image of 300x1"));
  const MediaItem frame{.name = "clip", .source = FrameFiles{{"missing.png"}}};
  EXPECT_THAT(refusal(frame), StartsWith("missing.png: "));
}

TEST_F(Prepare, AnItemThatFailsAfterItsPlanHoldsNothing) {
  // Zero is halfway between two bytes for a mean of one half, so no image has it.
  const MediaItem zeros = pixel_values(std::vector<std::uint8_t>(4 * 1536 * sizeof(float)),
                                       RowDType::kFloat32, 4, 1536, {1, 2, 2}, "zeros");
  EXPECT_THAT(refusal(zeros), StartsWith("zeros: pixel_values[0, 0] is 0"));
}

TEST_F(Prepare, ManyItemsKeepTheirOrderWithFailuresAmongThem) {
  std::vector<MediaItem> media;
  for (std::int64_t i = 1; i <= 9; ++i) {
    const auto size = static_cast<std::size_t>(32 * i * 32 * 3);
    media.push_back(image_rgb(std::vector<std::uint8_t>(size), 32 * i, 32, std::to_string(i)));
  }
  media[4] = image_file("missing.jpg");
  ThreadPool pool(3);
  DecodeBudget budget(1);
  const std::vector<PreparedMedia> prepared = prepare_all({*model_, options_, budget}, media, pool);
  ASSERT_EQ(prepared.size(), media.size());
  for (std::size_t i = 0; i < media.size(); ++i) {
    EXPECT_EQ(prepared[i].error.has_value(), i == 4) << i;
    EXPECT_EQ(prepared[i].item.plan.source_width_px,
              i == 4 ? 0 : 32 * (static_cast<std::int64_t>(i) + 1))
        << i;
  }
}

}  // namespace
}  // namespace fovea
