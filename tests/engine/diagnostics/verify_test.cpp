// What `fovea verify` says about graphs: that they ran, or why not.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "engine/backend.h"
#include "engine/diagnostics/graph_checks.h"
#include "engine/replicas/replica_session.h"
#include "fovea/diagnostics.h"
#include "models/load_model.h"
#include "support/golden.h"

namespace fovea {
namespace {

/// All checks, by an engine whose graphs have these budgets.
std::vector<Check> checks_of(const std::string& family, std::vector<std::int64_t> budgets) {
  Engine engine = Engine::load(test::golden_folder(family, "golden.safetensors"),
                               {.device = "cpu",
                                .num_threads = 2,
                                .graphs = {.encoder_cudagraph_token_budgets = std::move(budgets)}});
  return verify(engine, "");
}

bool is_of_a_graph(const Check& check) { return check.name.starts_with("graph "); }

std::ptrdiff_t checks_of_videos(const std::vector<Check>& checks) {
  return std::ranges::count(checks, "replayed video equals eager", &Check::name);
}

TEST(Verify, EveryGraphOfAFineLadderIsReplayed) {
  const std::vector<std::int64_t> budgets{8, 16, 17, 24, 32, 40, 48, 56, 61};
  const std::vector<Check> checks = checks_of("qwen3_vl", budgets);
  EXPECT_EQ(std::ranges::count_if(checks, is_of_a_graph), std::ssize(budgets));
  for (const Check& check : checks) {
    EXPECT_TRUE(check.passed) << check.name;
    EXPECT_FALSE(check.skipped) << check.name << ": " << check.detail;
    EXPECT_EQ(check.detail, is_of_a_graph(check) ? "equal bits" : check.detail) << check.name;
  }
  EXPECT_EQ(checks_of_videos(checks), 1) << "without reference frames";
}

TEST(Verify, AGraphThatNoImagesLoadIsSkipped) {
  const std::string folder = test::golden_folder("deepseek_ocr", "golden.safetensors");
  const Backend backend = make_backend("cpu", {.num_threads = 2});
  const std::unique_ptr<Stream> stream = backend.device->create_stream();
  const auto model = load_model(checkpoint::read_hf_config(folder), {},
                                checkpoint::WeightSource::open(folder), *backend.device, *stream);
  Replica replica(*model, *backend.device, {.user = {.encoder_cudagraph_token_budgets = {272}}});
  replica.graphs().capture();
  const std::vector<Check> checks = check_graphs(replica, "", 0);
  EXPECT_EQ(std::ranges::count_if(checks, is_of_a_graph), 5);
  for (const Check& check : checks) {
    EXPECT_TRUE(check.passed) << check.name;
    // An image has no tile or at least two.
    EXPECT_EQ(check.skipped, check.name.starts_with("graph local 100,")) << check.name;
    if (check.skipped) {
      EXPECT_EQ(check.detail, "not replayed: no images load this graph");
    }
  }
}

TEST(Verify, AModelThatTakesNoVideosIsCheckedWithoutThem) {
  const std::vector<Check> checks = checks_of("kimi_vl", {64});
  EXPECT_FALSE(checks.empty());
  EXPECT_EQ(checks_of_videos(checks), 0);
}

TEST(Verify, GraphsThatAreOffAreNotChecked) {
  Engine engine =
      Engine::load(test::golden_folder("qwen3_vl", "golden.safetensors"),
                   {.device = "cpu", .num_threads = 2, .graphs = {.cudagraph_mm_encoder = false}});
  EXPECT_EQ(std::ranges::count_if(verify(engine, ""), is_of_a_graph), 0);
}

}  // namespace
}  // namespace fovea
