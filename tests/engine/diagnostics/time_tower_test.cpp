// Which images `fovea bench latency` times.
#include <gtest/gtest.h>

#include "fovea/diagnostics.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

Engine load(const std::string& family) {
  return Engine::load(test::golden_folder(family, "golden.safetensors"),
                      {.device = "cpu", .num_threads = 2});
}

TEST(TimeTower, FindsTheImageOfEveryFamily) {
  Engine grid = load("qwen3_vl");
  EXPECT_EQ(time_tower(grid, {.patches = 440}, 0, 1).patches, 440);  // 20 x 22
  Engine views = load("deepseek_ocr");
  EXPECT_EQ(time_tower(views, {.patches = 4096}, 0, 1).patches,
            4096);  // a view of 1024 pixels alone
}

TEST(TimeTower, TemporalPatchesHaveThePatchesAskedFor) {
  Engine pairs = load("qwen3_vl");
  const TowerTiming timing = time_tower(pairs, {.count = 2, .patches = 144, .num_frames = 5}, 0, 1);
  EXPECT_EQ(timing.patches, 2 * 3 * 144);  // the last frame is a pair with itself
  EXPECT_EQ(timing.rows, 2 * 3 * 36);
  const TowerTiming pair = time_tower(pairs, {.patches = 256, .num_frames = 2}, 0, 1);
  const TowerTiming more = time_tower(pairs, {.patches = 256, .num_frames = 8}, 0, 1);
  EXPECT_DOUBLE_EQ(more.flops, 4 * pair.flops);
  Engine singles = load("internvl");
  EXPECT_EQ(time_tower(singles, {.patches = 16, .num_frames = 5}, 0, 1).rows, 5 * 4);
  Engine images = load("llama4");
  test::expect_error(ErrorCode::kUnsupported, "video",
                     [&] { (void)time_tower(images, {.patches = 16, .num_frames = 2}, 0, 1); });
}

TEST(TimeTower, ItemsOfSizesRunTogether) {
  Engine engine = load("qwen3_vl");
  const TowerTiming timing = time_tower(
      engine, {.sizes = {{64, 64}, {.width_px = 96, .height_px = 96, .num_frames = 4}}}, 0, 1);
  EXPECT_EQ(timing.items, 2);
  EXPECT_EQ(timing.patches, 16 + 2 * 144);
  EXPECT_EQ(timing.rows, 4 + 2 * 36);
  EXPECT_EQ(engine.stats().graph_hits, 2) << "by the replay";
  test::expect_error(ErrorCode::kInvalidArgument, "0x64", [&] {
    (void)time_tower(engine, {.sizes = {{0, 64}}}, 0, 1);
  });
}

TEST(TimeTower, EqualFramesAreEncodedOnce) {
  Engine engine =
      Engine::load(test::golden_folder("qwen3_vl", "golden.safetensors"),
                   {.device = "cpu", .num_threads = 2, .packing = PackingPolicy::kUnits});
  (void)time_tower(engine, {.patches = 144, .num_frames = 8}, 0, 1);
  EXPECT_EQ(engine.stats().units_reused, 0);
  (void)time_tower(engine, {.patches = 144, .num_frames = 8, .equal_frames = true}, 0, 1);
  EXPECT_EQ(engine.stats().units_reused, 2 * 3) << "by a replay and an eager run";
}

TEST(TimeTower, NamesTheNearestSizesThatThereAre) {
  Engine grid = load("qwen3_vl");
  test::expect_error(ErrorCode::kInvalidArgument,
                     "no image of this model has exactly 7 patches; the nearest have 4 and 8",
                     [&] { (void)time_tower(grid, {.patches = 7}, 0, 1); });
  test::expect_error(ErrorCode::kInvalidArgument,
                     "no temporal patch of this model has exactly 64 patches; the nearest have ",
                     [&] { (void)time_tower(grid, {.patches = 64, .num_frames = 5}, 0, 1); });
  Engine views = load("deepseek_ocr");
  test::expect_error(ErrorCode::kInvalidArgument, "64 patches; the nearest have 4096",
                     [&] { (void)time_tower(views, {.patches = 64}, 0, 1); });
  test::expect_error(ErrorCode::kInvalidArgument, "the nearest have 4096 and 7296",
                     [&] { (void)time_tower(views, {.patches = 5000}, 0, 1); });
}

TEST(TimeTower, RefusesMoreThanAMachineCanHold) {
  Engine engine = load("qwen3_vl");
  for (const std::int64_t count : {std::int64_t{1} << 62, std::int64_t{1} << 40}) {
    test::expect_error(ErrorCode::kInvalidArgument, " images of 64 patches are more than 16777216",
                       [&] { (void)time_tower(engine, {.count = count, .patches = 64}, 1, 1); });
  }
  test::expect_error(
      ErrorCode::kInvalidArgument, "1 videos of 1099511627776 frames of 64 patches", [&] {
        (void)time_tower(engine, {.patches = 64, .num_frames = std::int64_t{1} << 40}, 1, 1);
      });
  test::expect_error(ErrorCode::kInvalidArgument, "cannot have -1 frames",
                     [&] { (void)time_tower(engine, {.patches = 64, .num_frames = -1}, 1, 1); });
  test::expect_error(ErrorCode::kInvalidArgument, "1 images of 9223372036854775807 patches",
                     [&] { (void)time_tower(engine, {.patches = INT64_MAX}, 1, 1); });
}

}  // namespace
}  // namespace fovea
