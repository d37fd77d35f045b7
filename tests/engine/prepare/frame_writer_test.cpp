// A video frame by frame: units leave when they are complete, with the bytes of the whole item.
#include "engine/prepare/frame_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "models/load_model.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/property.h"

namespace fovea {
namespace {

constexpr const char* kGolden = "golden.safetensors";

/// A clip of 64 x 64 pixels that leaves in units.
class UnitsOfAClip : public ::testing::Test {
 protected:
  /// Units that left together, and the frame with which they did.
  struct Take {
    PreparedItem units;
    UnitRange range;
    std::int64_t frame;
  };

  static std::unique_ptr<EncoderGraphModel> load(const std::string& family) {
    return plan_model(checkpoint::read_hf_config(test::golden_folder(family, kGolden)), {});
  }

  [[nodiscard]] ItemPlan plan(std::int64_t num_frames) const {
    return model_->processor().plan_video(num_frames, 64, 64);
  }

  /// Adds frames whose pixels depend on their number alone, as many or up to the last wanted one.
  void add(FrameWriter& writer, std::int64_t num_frames) {
    while (writer.next_frame() < std::min(num_frames, writer.end_frame())) {
      frame_ = writer.next_frame();
      std::mt19937 random(static_cast<unsigned>(frame_));
      std::vector<std::uint8_t> rgb(64 * 64 * 3);
      std::ranges::generate(rgb, [&] { return static_cast<std::uint8_t>(random()); });
      writer.announce(64, 64);
      writer.add({rgb.data(), 64, 64});
    }
  }

  [[nodiscard]] PreparedItem whole(std::int64_t num_frames) {
    PreparedItem item;
    FrameWriter writer(model_->processor(), media_, limits_, item);
    writer.expect(num_frames);
    add(writer, num_frames);
    return item;
  }

  /// The same in units. @param given_up frames that came before and do not count, of a clip of
  /// twice as many.
  [[nodiscard]] std::vector<Take> in_units(std::int64_t num_frames, std::size_t most_bytes,
                                           std::int64_t given_up = 0) {
    PreparedItem item;
    std::vector<Take> takes;
    FrameWriter writer(model_->processor(), media_, limits_, item);
    writer.send_units(
        [&](PreparedItem units, const UnitRange& range) {
          takes.push_back({std::move(units), range, frame_});
        },
        most_bytes);
    if (given_up > 0) {
      writer.expect(2 * given_up);
      add(writer, given_up);
    }
    writer.expect(num_frames);
    add(writer, num_frames);
    EXPECT_TRUE(item.pixels.empty()) << "units are not kept";
    EXPECT_EQ(item.plan.num_frames, num_frames);
    return takes;
  }

  static std::vector<UnitRange> ranges_of(const std::vector<Take>& takes) {
    std::vector<UnitRange> ranges;
    for (const Take& take : takes) ranges.push_back(take.range);
    return ranges;
  }

  /// Takes that are the item together, one after the other.
  static void expect_whole(std::span<const Take> takes, const PreparedItem& item) {
    std::vector<std::uint8_t> pixels;
    std::int64_t next = 0;
    for (const auto& [units, range, frame] : takes) {
      EXPECT_EQ(units.plan.spec.out_rows, item.plan.spec.out_rows) << "the plan is of all units";
      EXPECT_EQ(units.first_byte, pixels.size());
      EXPECT_EQ(range.first, next);
      next += range.count;
      pixels.insert(pixels.end(), units.pixels.begin(), units.pixels.end());
    }
    EXPECT_EQ(next, item.plan.spec.units[0].count);
    EXPECT_TRUE(pixels == item.pixels);
  }

  std::unique_ptr<EncoderGraphModel> model_ = load("qwen3_vl");
  const MediaItem media_ = video_rgb({}, 0, 64, 64, 2.0, "clip");
  const MediaLimits limits_ = {};
  std::int64_t frame_ = 0;  // the number of the next
};

TEST_F(UnitsOfAClip, LeaveWithTheLastFrameThatThereIsRoomFor) {
  const std::size_t unit = plan(12).unit_bytes[0];  // two frames
  const std::vector<Take> takes = in_units(12, 2 * unit + unit / 2);
  EXPECT_EQ(ranges_of(takes), (std::vector<UnitRange>{{0, 2}, {2, 2}, {4, 2}}));
  EXPECT_EQ(takes[0].frame, 3);
  EXPECT_EQ(takes[2].frame, 11);
  EXPECT_EQ(takes[1].units.pixels.size(), 2 * unit);
  expect_whole(takes, whole(12));
}

TEST_F(UnitsOfAClip, EndWithAFrameOfItsOwn) {
  const std::size_t unit = plan(7).unit_bytes[0];
  const std::vector<Take> takes = in_units(7, 3 * unit);
  EXPECT_EQ(ranges_of(takes), (std::vector<UnitRange>{{0, 3}, {3, 1}}));
  EXPECT_EQ(takes[1].units.pixels.size(), unit / 2);
  expect_whole(takes, whole(7));
}

TEST_F(UnitsOfAClip, LeaveOneByOneWhereNotEvenOneFits) {
  for (const std::size_t most_bytes : {std::size_t{0}, plan(5).unit_bytes[0] - 1}) {
    const std::vector<Take> takes = in_units(5, most_bytes);
    EXPECT_EQ(ranges_of(takes), (std::vector<UnitRange>{{0, 1}, {1, 1}, {2, 1}}));
    expect_whole(takes, whole(5));
  }
}

TEST_F(UnitsOfAClip, LeaveTogetherWhereAllFit) {
  const std::vector<Take> takes = in_units(5, std::size_t{1} << 30);
  ASSERT_EQ(takes.size(), 1U);
  EXPECT_EQ(takes[0].units.pixels.capacity(), plan(5).pixel_bytes) << "no more memory than that";
  expect_whole(takes, whole(5));
}

TEST_F(UnitsOfAClip, BeginAgainWithTheFirst) {
  const std::size_t unit = plan(6).unit_bytes[0];
  for (const std::int64_t given_up : {1, 2, 3, 5}) {  // in and behind a take of two frames
    SCOPED_TRACE(given_up);
    const std::vector<Take> takes = in_units(6, unit, given_up);
    const auto before = static_cast<std::size_t>(given_up / 2);
    ASSERT_EQ(takes.size(), before + 3);
    for (std::size_t i = 0; i < before; ++i) EXPECT_EQ(takes[i].range.first, i);
    expect_whole(std::span(takes).subspan(before), whole(6));
  }
}

TEST_F(UnitsOfAClip, ThatAreWantedAloneNeedTheirFramesAlone) {
  const ItemPlan ahead = plan(13);  // seven units, the last of one frame
  const PreparedItem item = whole(13);
  const std::size_t unit = ahead.unit_bytes[0];
  for (const UnitRange& wanted : {UnitRange{0, 3}, {3, 2}, {5, 2}, {6, 1}, {0, 7}}) {
    for (const std::size_t most_bytes : {unit, ahead.pixel_bytes}) {
      PreparedItem unused;
      FrameWriter writer(model_->processor(), media_, limits_, unused, {&ahead, wanted});
      std::vector<std::uint8_t> pixels;
      const std::size_t begin = static_cast<std::size_t>(wanted.first) * unit;
      writer.send_units(
          [&](const PreparedItem& units, const UnitRange&) {
            EXPECT_EQ(units.first_byte, begin + pixels.size());
            pixels.insert(pixels.end(), units.pixels.begin(), units.pixels.end());
          },
          most_bytes);
      writer.expect(13);
      EXPECT_EQ(writer.next_frame(), 2 * wanted.first);
      EXPECT_EQ(writer.end_frame(), std::min<std::int64_t>(13, 2 * (wanted.first + wanted.count)));
      add(writer, 13);
      ASSERT_EQ(pixels.size(), plan_of_units(ahead, wanted).pixel_bytes);
      EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(),
                             item.pixels.begin() + static_cast<std::ptrdiff_t>(begin)));
    }
  }
}

TEST_F(UnitsOfAClip, ThatAreWantedAloneHaveThePlanThatWasMadeAhead) {
  const ItemPlan ahead = plan(6);
  PreparedItem unused;
  FrameWriter writer(model_->processor(), media_, limits_, unused, {&ahead, {1, 2}});
  writer.expect(6);
  test::expect_error(ErrorCode::kInvalidArgument, "frame 2 is 96x64 pixels, the first one is 64x64",
                     [&] { writer.announce(96, 64); });
}

TEST_F(UnitsOfAClip, OfAnyFamilyHoldTheBytesOfTheWhole) {
  int families = 0;
  for (const std::string& family : test::golden_families(FOVEA_TEST_GOLDEN_DIR, kGolden)) {
    SCOPED_TRACE(family);
    model_ = load(family);
    const std::vector<Modality>& modalities = model_->graph_spec().modalities;
    if (std::ranges::find(modalities, Modality::kVideo) == modalities.end()) continue;
    ++families;
    test::for_all(5, [&](auto& random) {
      const std::int64_t frames = test::uniform(random, 3, 12);
      ASSERT_TRUE(is_row_of_frames(plan(frames)));
      const PreparedItem item = whole(frames);
      const auto bytes = test::uniform(random, 0, std::ssize(item.pixels));
      expect_whole(in_units(frames, static_cast<std::size_t>(bytes)), item);
    });
  }
  EXPECT_GE(families, 6);
}

TEST_F(UnitsOfAClip, AreThoseOfVideosOfSeveralAlone) {
  EXPECT_TRUE(is_row_of_frames(plan(3)));
  EXPECT_FALSE(is_row_of_frames(plan(2))) << "a single unit";
  EXPECT_FALSE(is_row_of_frames(model_->processor().plan_image(64, 64)));
  EXPECT_FALSE(is_row_of_frames(model_->processor().plan_grid(Modality::kVideo, {4, 4, 4})))
      << "pixel values come as a whole";
}

}  // namespace
}  // namespace fovea
