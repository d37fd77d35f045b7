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
  EXPECT_EQ(time_tower(grid, 440, 1, 0, 1).patches, 440);  // 20 x 22
  Engine views = load("deepseek_ocr");
  EXPECT_EQ(time_tower(views, 4096, 1, 0, 1).patches, 4096);  // a view of 1024 pixels alone
}

TEST(TimeTower, NamesTheNearestSizesThatThereAre) {
  Engine grid = load("qwen3_vl");
  test::expect_error(ErrorCode::kInvalidArgument,
                     "no image of this model has exactly 7 patches; the nearest have 4 and 8",
                     [&] { (void)time_tower(grid, 7, 1, 0, 1); });
  Engine views = load("deepseek_ocr");
  test::expect_error(ErrorCode::kInvalidArgument, "64 patches; the nearest have 4096",
                     [&] { (void)time_tower(views, 64, 1, 0, 1); });
  test::expect_error(ErrorCode::kInvalidArgument, "the nearest have 4096 and 7296",
                     [&] { (void)time_tower(views, 5000, 1, 0, 1); });
}

TEST(TimeTower, RefusesMoreThanAMachineCanHold) {
  Engine engine = load("qwen3_vl");
  for (const std::int64_t count : {std::int64_t{1} << 62, std::int64_t{1} << 40}) {
    test::expect_error(ErrorCode::kInvalidArgument, " images of 64 patches are more than 16777216",
                       [&] { (void)time_tower(engine, 64, count, 1, 1); });
  }
  test::expect_error(ErrorCode::kInvalidArgument, "1 images of 9223372036854775807 patches",
                     [&] { (void)time_tower(engine, INT64_MAX, 1, 1, 1); });
}

}  // namespace
}  // namespace fovea
