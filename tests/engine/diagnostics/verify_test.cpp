// What `fovea verify` says about graphs: that they ran, or why not.
#include <gtest/gtest.h>

#include <algorithm>

#include "fovea/diagnostics.h"
#include "support/golden.h"

namespace fovea {
namespace {

/// The checks of captured graphs, by an engine whose graphs have these budgets.
std::vector<Check> graph_checks(const std::string& family, std::vector<std::int64_t> budgets) {
  Engine engine = Engine::load(test::golden_folder(family, "golden.safetensors"),
                               {.device = "cpu",
                                .num_threads = 2,
                                .graphs = {.encoder_cudagraph_token_budgets = std::move(budgets)}});
  engine.warm_up();
  std::vector<Check> checks = verify(engine, "");
  std::erase_if(checks, [](const Check& check) { return !check.name.starts_with("graph "); });
  std::ranges::sort(checks, {}, &Check::name);
  return checks;
}

TEST(Verify, GraphsThatArePassedWereReplayed) {
  const std::vector<Check> checks = graph_checks("qwen3_vl", {16, 64});
  ASSERT_EQ(checks.size(), 2U);
  for (const Check& check : checks) {
    EXPECT_TRUE(check.passed) << check.name;
    EXPECT_FALSE(check.skipped) << check.name;
    EXPECT_EQ(check.detail, "equal bits") << check.name;
  }
}

TEST(Verify, AGraphWhoseLoadFitsASmallerOneIsSkipped) {
  // The largest square of 17 tokens has 16.
  const std::vector<Check> checks = graph_checks("qwen3_vl", {16, 17});
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_EQ(checks[0].name, "graph default 16, 1 item");
  EXPECT_FALSE(checks[0].skipped);
  EXPECT_EQ(checks[1].name, "graph default 17, 1 item");
  EXPECT_TRUE(checks[1].skipped);
  EXPECT_EQ(checks[1].detail, "not replayed: its load fits others");
}

TEST(Verify, AGraphThatNoPictureFillsIsSkipped) {
  // A picture has no tile, or at least two of them; as square as the load is, four.
  const std::vector<Check> checks = graph_checks("deepseek_ocr", {272});
  const auto one_tile = std::ranges::find_if(
      checks, [](const Check& check) { return check.name.starts_with("graph local 100,"); });
  ASSERT_NE(one_tile, checks.end());
  EXPECT_TRUE(one_tile->passed);
  EXPECT_TRUE(one_tile->skipped);
  EXPECT_EQ(one_tile->detail, "not replayed: no picture has a load it holds");
}

}  // namespace
}  // namespace fovea
